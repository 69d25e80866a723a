import type { RepositoryRef } from '../../github/client.ts';
import { statusOf } from '../../github/client.ts';
import { listAllInstallations, listReached } from '../../github/installations.ts';
import type { Removal } from '../../store/ports.ts';
import type { Dependencies } from './dependencies.ts';

const BATCH = 100;
/** When GitHub could not be asked, it is asked again after this. */
const ASK_AGAIN_MS = 10 * 60_000;
/** So long we wait for GitHub to confirm a removal it has told us of; the promise is 24 h. */
const CONFIRM_MS = 20 * 3600 * 1000;
/** A job that was running may write after the first pass; none runs longer than two downloads and two analyses. */
const SECOND_PASS_MS = 3 * 3600 * 1000;

/** Whether data is to go. A removal may be long undone: events come late, twice and in any order. */
async function isConfirmed({ github, log, now }: Dependencies, removal: Removal): Promise<boolean | null> {
  try {
    const answer = await github.reaches(removal.installationId, removal.repoId);
    if (answer !== 'unknown') return answer === 'no';
  } catch (error) {
    log.warn({ err: error, installationId: removal.installationId }, 'a removal could not be confirmed');
  }
  return now() - removal.askedAt > CONFIRM_MS ? true : null;
}

/** Every repository the App reaches and by which installation, asked for once. */
type Reached = ReadonlyMap<number, RepositoryRef & { readonly installationId: number }>;

async function listAllReached({ github, signal }: Dependencies): Promise<Reached> {
  const all = new Map<number, RepositoryRef & { readonly installationId: number }>();
  for (const [installationId, { suspended }] of await listAllInstallations(github.app)) {
    signal.throwIfAborted();
    if (suspended) continue;
    const reached = await listReached(await github.installation(installationId, { metadata: 'read' }));
    for (const [id, repository] of reached) all.set(id, { ...repository, installationId });
  }
  return all;
}

/**
 * Repositories that have left an installation may be another's by now: transferred, and no event of the new owner has come yet. Their data then
 * goes with them. True: nothing is left to be erased. null: not known yet.
 */
async function isElsewhere(deps: Dependencies, removal: Removal, reached: () => Promise<Reached>): Promise<boolean | null> {
  const { repoId, installationId, askedAt } = removal;
  const { erasures, repositories } = deps.store;
  const ids = await erasures.repositoriesOf(removal);
  if (ids.length === 0) return false;
  try {
    const all = await reached();
    let moved = 0;
    for (const id of ids) {
      const found = all.get(id);
      if (found === undefined || found.installationId === installationId) continue;
      await repositories.see({ repoId: id, installationId: found.installationId, owner: found.owner, name: found.name });
      moved++;
    }
    return repoId !== null && moved > 0;
  } catch (error) {
    deps.signal.throwIfAborted();
    deps.log.warn({ err: error, installationId, repoId }, 'other installations could not be asked for removed repositories');
    return deps.now() - askedAt > CONFIRM_MS ? false : null;
  }
}

/** Erases what is held of repositories the App was removed from. Returns how many rows went. */
export async function eraseRemoved(deps: Dependencies): Promise<number> {
  const { erasures } = deps.store;
  let count = 0;
  let listed: Promise<Reached> | null = null;
  const reached = (): Promise<Reached> => {
    listed ??= listAllReached(deps);
    return listed;
  };
  for (const removal of await erasures.due(BATCH)) {
    if (removal.erasedAt !== null) {
      // Second pass: unless the App is back, whatever a job wrote meanwhile goes, too.
      if ((await isConfirmed(deps, removal)) !== false) count += await erasures.erase(removal, deps.now());
      await erasures.drop(removal);
      continue;
    }
    const confirmed = await isConfirmed(deps, removal);
    const elsewhere = confirmed === true ? await isElsewhere(deps, removal, reached) : false;
    if (confirmed === null || elsewhere === null) await erasures.later(removal, deps.now() + ASK_AGAIN_MS);
    else if (!confirmed || elsewhere) await erasures.drop(removal);
    else {
      const rows = await erasures.erase(removal, deps.now() + SECOND_PASS_MS);
      count += rows;
      deps.log.info({ installationId: removal.installationId, repoId: removal.repoId, rows }, 'data of a removed repository is erased');
    }
  }
  if (count > 0) {
    await deps.store.portions.tidy();
    await erasures.compact();
  }
  return count;
}

/** Finds removals whose event was lost: what is held is compared with what GitHub lists. Erasing is `eraseRemoved`'s. */
export async function findRemoved(deps: Dependencies): Promise<number> {
  const { github, store, log } = deps;
  const held = Map.groupBy(await store.repositories.list(), ({ installationId }) => installationId);
  if (held.size === 0) return 0;
  const installed = await listAllInstallations(github.app);
  let count = 0;
  for (const [installationId, repositories] of held) {
    deps.signal.throwIfAborted();
    const installation = installed.get(installationId);
    if (installation === undefined) {
      await store.erasures.ask(installationId, null);
      count += repositories.length;
      continue;
    }
    if (installation.suspended) continue;
    try {
      const reached = await listReached(await github.installation(installationId, { metadata: 'read' }));
      for (const { repoId } of repositories) {
        if (reached.has(repoId)) continue;
        await store.erasures.ask(installationId, repoId);
        count++;
      }
    } catch (error) {
      const status = statusOf(error);
      if (status === null || status >= 500) throw error;
      log.warn({ err: error, installationId }, 'repositories of an installation could not be listed');
    }
  }
  return count;
}
