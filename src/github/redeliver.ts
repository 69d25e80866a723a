import { type Octokit, statusOf } from './client.ts';

/** GitHub keeps deliveries for about three days. */
const WINDOW_MS = 3 * 24 * 3600 * 1000;
const MAX_LISTED = 2000;
const MAX_REDELIVERED = 200;
/** A delivery that failed this often is not asked for again. */
const MAX_ATTEMPTS = 4;

interface Attempt {
  readonly id: number;
  readonly guid: string;
  readonly at: number;
  readonly name: string;
  readonly isDelivered: boolean;
}

/** Deliveries that never arrived, one attempt of each, oldest first. */
export function planRedelivery(attempts: readonly Attempt[], handled: ReadonlySet<string>, isKnown: (guid: string) => boolean): Attempt[] {
  const byGuid = Map.groupBy(attempts, ({ guid }) => guid);
  return [...byGuid.values()]
    .filter((of) => of.length < MAX_ATTEMPTS && !of.some(({ isDelivered }) => isDelivered))
    .map((of) => of.reduce((newest, attempt) => (attempt.at > newest.at ? attempt : newest)))
    .filter(({ guid, name }) => handled.has(name) && !isKnown(guid))
    .sort((a, b) => a.at - b.at)
    .slice(0, MAX_REDELIVERED);
}

/**
 * Asks GitHub to send again what it could not deliver, for example while this server was down. It does not do so by itself.
 * Returns how many were asked for.
 */
export async function redeliverFailed(
  app: Octokit,
  handled: ReadonlySet<string>,
  known: (guids: readonly string[]) => Promise<ReadonlySet<string>>,
  now: number,
): Promise<number> {
  const attempts: Attempt[] = [];
  try {
    const pages = app.paginate.iterator('GET /app/hook/deliveries', { per_page: 100 });
    for await (const { data } of pages) {
      for (const { id, guid, delivered_at, event, action, status_code } of data) {
        const name = action === null ? event : `${event}.${action}`;
        attempts.push({ id, guid, at: Date.parse(delivered_at), name, isDelivered: status_code >= 200 && status_code < 300 });
      }
      if (attempts.length >= MAX_LISTED || (attempts.at(-1)?.at ?? 0) < now - WINDOW_MS) break;
    }
  } catch (error) {
    if (statusOf(error) === 404) return 0;
    throw error;
  }
  const recent = attempts.filter(({ at }) => at >= now - WINDOW_MS);
  const received = await known([...new Set(recent.map(({ guid }) => guid))]);
  const plan = planRedelivery(recent, handled, (guid) => received.has(guid));
  for (const { id } of plan) {
    await app.request('POST /app/hook/deliveries/{delivery_id}/attempts', { delivery_id: id }).catch((error: unknown) => {
      if (statusOf(error) === null || statusOf(error)! >= 500) throw error;
    });
  }
  return plan.length;
}
