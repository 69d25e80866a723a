import type { Database } from './ports.ts';

/**
 * Whose turn it is. Portions of jobs that have begun come first, then what a person waits for and costs little (commands, new heads, finished
 * runs), then pull requests, then the profiles of branches that nobody waits for. Within a class installations take turns: a job comes behind as many others as its own
 * installation has waiting, so that a hundred jobs of one do not keep the single one of another waiting.
 */
const CLASS = 1_000_000;
const PORTION = 3 * CLASS;
const LIGHT = 2 * CLASS;
const ANALYSIS = CLASS;
const BASELINE = 0;
/** Further back there are no places: those behind it are served in the order they came. */
const MAX_BEHIND = 50_000;

function classOf(subject: string): number {
  if (subject.startsWith('portion/')) return PORTION;
  if (subject.startsWith('pull-request/')) return ANALYSIS;
  return subject.startsWith('branch/') ? BASELINE : LIGHT;
}

/** Lowest and highest priority of jobs like this one. */
export function boundsOf(subject: string): { readonly lowest: number; readonly highest: number } {
  const lowest = classOf(subject);
  return { lowest, highest: lowest + CLASS - 1 };
}

/** Priority of a job when its installation has so many like it waiting; the larger comes first. */
export function priorityOf(subject: string, waiting: number): number {
  return boundsOf(subject).highest - Math.min(waiting, MAX_BEHIND);
}

/** Priorities of what is cheap, of what runs analyses, and of the portions that those wait for. */
export const HANDLED_TOGETHER = {
  light: { minPriority: LIGHT, maxPriority: PORTION - 1 },
  heavy: { maxPriority: LIGHT - 1 },
  portions: { minPriority: PORTION },
} as const;

const MAX_KNOWN = 20_000;

/** The installation a subject belongs to; subjects of a repository nobody has told of stand for themselves. */
export function installationsOf(database: Database): (subject: string) => Promise<string> {
  const known = new Map<string, string>();
  return async (subject) => {
    const repository = subject.split('/')[1] ?? '';
    const found = known.get(repository);
    if (found !== undefined) return found;
    const id = Number(repository);
    if (!Number.isSafeInteger(id)) return subject;
    const [row] = await database.query<{ installation_id: number | string }>(
      'SELECT installation_id FROM npu_advisor.repositories WHERE repo_id = $1',
      [id],
    );
    if (row === undefined) return `repository-${repository}`;
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(repository, String(row.installation_id));
    return String(row.installation_id);
  };
}
