import type { Report } from '../../model/report.ts';
import { packPage } from '../details/content.ts';
import { type PageSubject, pageOf } from '../details/link.ts';
import type { Dependencies } from './dependencies.ts';

export interface PagePlace extends PageSubject {
  /** The pull request to name where `pr` is that of a merge queue. */
  readonly shownPr?: number;
  /** The settings name the language. */
  readonly isLangSaid?: boolean;
  readonly htmlBase: string | null;
  readonly fromFork: boolean;
}

/**
 * Keeps a report as it is shown, and returns the address of its page; null where there are no pages. Saying the same again gives the same
 * address, until half of its time is over.
 */
export async function keepPage(
  deps: Pick<Dependencies, 'store' | 'links' | 'now' | 'log'>,
  report: Report,
  place: PagePlace,
  other: Report | null = null,
): Promise<string | null> {
  const { links, store, now } = deps;
  if (links === null) return null;
  const { repoId, pr, sha, htmlBase, fromFork, shownPr = pr, isLangSaid = false } = place;
  const page = pageOf(place);
  const { version, pack } = packPage({ report, isLangSaid, context: { pr: shownPr, sha, htmlBase, fromFork } }, other);
  const known = await store.pages.find(repoId, page);
  const isLasting = known !== null && known.expiresAt - now() > links.lifetimeMs / 2;
  const expiresAt = isLasting ? known.expiresAt : now() + links.lifetimeMs;
  if (known?.version !== version) {
    const content = await pack();
    if (content === null) {
      deps.log.warn({ repository: repoId, pr }, 'a report is too large for a details page');
      return null;
    }
    await store.pages.put({ repoId, page, pr, sha, version, content, expiresAt });
  } else if (!isLasting) await store.pages.extend(repoId, page, expiresAt);
  return links.addressOf(repoId, page, expiresAt);
}

/** The address of a page that is kept; null: none is. */
export async function addressOfPage({ store, links }: Pick<Dependencies, 'store' | 'links'>, subject: PageSubject): Promise<string | null> {
  if (links === null) return null;
  const page = pageOf(subject);
  const known = await store.pages.find(subject.repoId, page);
  return known === null ? null : links.addressOf(subject.repoId, page, known.expiresAt);
}
