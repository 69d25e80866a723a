import type { Report } from '../model/report.ts';

/** Where two values of one shape differ: `is` the other value, `in` by name or place. */
export type Difference = { readonly is: unknown } | { readonly in: Readonly<Record<string, Difference>> };

function isHolder(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function differenceOf(one: unknown, other: unknown): Difference | null {
  if (Object.is(one, other)) return null;
  const isAlike = isHolder(one) && isHolder(other) && Array.isArray(one) === Array.isArray(other);
  if (!isAlike || (Array.isArray(one) && one.length !== (other as unknown as unknown[]).length)) return { is: other };
  const names = Object.keys(one);
  // What is only in the one cannot be told apart from what was taken out of it since.
  if (names.some((name) => one[name] !== undefined && (!Object.hasOwn(other, name) || other[name] === undefined))) return { is: other };
  const differences = Object.keys(other).flatMap((name) => {
    const found = differenceOf(Object.hasOwn(one, name) ? one[name] : undefined, other[name]);
    return found === null ? [] : [[name, found] as const];
  });
  return differences.length === 0 ? null : { in: Object.fromEntries(differences) };
}

function applied(value: unknown, difference: Difference): unknown {
  if ('is' in difference) return difference.is;
  if (!isHolder(value)) return value;
  const change = (name: string, of: unknown): unknown => {
    const found = Object.hasOwn(difference.in, name) ? difference.in[name] : undefined;
    return found === undefined ? of : applied(of, found);
  };
  if (Array.isArray(value)) return value.map((of, i) => change(String(i), of));
  const added = Object.entries(difference.in).flatMap(([name, found]) =>
    !Object.hasOwn(value, name) && 'is' in found ? [[name, found.is] as const] : [],
  );
  return Object.fromEntries([...Object.entries(value).map(([name, of]) => [name, change(name, of)] as const), ...added]);
}

/** What a report says in another language, as far as it differs from the one at hand: figures, names and pictures are in both the same. */
export function textsOf(report: Report, other: Report): Difference {
  return differenceOf(report, other) ?? { in: {} };
}

/** The report in the other language. What was taken out of it since, its pictures for one, stays out. */
export function inOther(report: Report, texts: Difference): Report {
  return applied(report, texts) as Report;
}
