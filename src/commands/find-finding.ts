import { quoteLiteral } from '../base/phrase.ts';
import { nearestName } from '../config/nearest.ts';
import { REGRESSION, type ShownFinding } from '../model/acknowledgement.ts';
import type { L10n } from '../model/lang.ts';

/** What a person may write for a finding: number of the summary, id or its beginning, name of the rule, or `all`. */
const REFERENCE = /^#?[\w.:-]{1,200}$/;
const MIN_PREFIX = 6;
const MAX_NAMED = 10;

export type Found = { readonly findings: readonly ShownFinding[] } | { readonly problem: L10n };

export function isReference(word: string): boolean {
  return REFERENCE.test(word);
}

/** True for what means another finding once something else is shown: a number of the summary, or `all`. */
export function isByPlace(reference: string): boolean {
  return /^(?:#?\d{1,4}|all)$/i.test(reference);
}

function listOf(findings: readonly ShownFinding[]): L10n {
  const named = findings.slice(0, MAX_NAMED).map(({ id, number }) => `${number === null ? '' : `${number} = `}${quoteLiteral(id)}`);
  const more = findings.length > named.length ? ', …' : '';
  return { en: `${named.join(', ')}${more}`, zh: `${named.join('、')}${more}` };
}

/** Looks a reference up among the findings that are shown. A text says why it names none, or more than one. */
export function findFinding(reference: string, shown: readonly ShownFinding[]): Found {
  const wanted = reference.replace(/^#/, '').toLowerCase();
  const one = (findings: readonly ShownFinding[]): Found | null => {
    if (findings.length === 0) return null;
    if (findings.length === 1) return { findings };
    const { en, zh } = listOf(findings);
    return { problem: { en: `${quoteLiteral(reference)} names several: ${en}`, zh: `${quoteLiteral(reference)} 对应多个：${zh}` } };
  };
  if (/^\d{1,4}$/.test(wanted)) {
    const found = one(shown.filter(({ number }) => number === Number(wanted)));
    if (found !== null) return found;
    const { en, zh } = listOf(shown.filter(({ number }) => number !== null));
    const none = shown.length === 0;
    return {
      problem: {
        en: none ? 'The last report shows no finding' : `There is no finding ${Number(wanted)}; shown are ${en}`,
        zh: none ? '最近一次报告中没有原因' : `没有编号为 ${Number(wanted)} 的原因；现有 ${zh}`,
      },
    };
  }
  const exact = shown.filter(({ id }) => id.toLowerCase() === wanted);
  // The regression itself stands for the finding of its rule, too.
  const ofRule = shown.filter(({ rule, state, number }) => rule === wanted && state !== 'part' && (rule !== REGRESSION || number === null));
  const byRule = ofRule.length > 0 ? ofRule : shown.filter(({ rule }) => rule === wanted);
  const byPrefix = wanted.length >= MIN_PREFIX ? shown.filter(({ id }) => id.toLowerCase().startsWith(wanted)) : [];
  const found = one(exact) ?? one(byRule) ?? one(byPrefix);
  if (found !== null) return found;
  const names = shown.flatMap(({ id, rule }) => [id, rule]);
  const nearest = nearestName(wanted, names);
  const hint =
    nearest === null ? { en: '', zh: '' } : { en: `, did you mean ${quoteLiteral(nearest)}?`, zh: `，是否指 ${quoteLiteral(nearest)}？` };
  return {
    problem: {
      en: `The last report has no finding ${quoteLiteral(reference)}${hint.en}`,
      zh: `最近一次报告中没有 ${quoteLiteral(reference)}${hint.zh}`,
    },
  };
}

/** Several references at once; `all`: every one that is open. */
export function findFindings(references: readonly string[], shown: readonly ShownFinding[], all: ShownFinding['state']): Found {
  const findings = new Map<string, ShownFinding>();
  for (const reference of references) {
    if (reference.toLowerCase() === 'all') {
      for (const finding of shown) if (finding.state === all) findings.set(finding.id, finding);
      continue;
    }
    const found = findFinding(reference, shown);
    if ('problem' in found) return found;
    for (const finding of found.findings) findings.set(finding.id, finding);
  }
  return { findings: [...findings.values()] };
}
