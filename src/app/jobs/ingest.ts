import { Task } from '../../github/intake.ts';
import type { Delivery, InboxReader } from '../../store/ports.ts';
import type { Dependencies } from './dependencies.ts';
import { requestAnalysis } from './handle-subject.ts';
import { QUEUE_PR } from './merge-queue.ts';
import { noteUnseen } from './reconcile.ts';
import { routeTask } from './route.ts';

const BATCH = 100;

/** Open checks of an installation that are looked at when it can be written to again. */
const MAX_OPEN = 500;

/** What could not be done, or was not told, while an installation was suspended or lacked a right. */
async function takeUpInstallation(
  deps: Dependencies,
  origin: string,
  installationId: number,
  suspendedSince: number | null,
): Promise<void> {
  await deps.store.checks.hurry(installationId);
  for (const { repoId, owner, repo, pr, sha } of await deps.store.checks.openOfInstallation(installationId, MAX_OPEN)) {
    if (pr === QUEUE_PR) continue;
    const repository = { id: repoId, owner, name: repo };
    await requestAnalysis(deps, origin, { installationId, repository, pr, headSha: sha, run: null, isAsked: false, commentId: null });
  }
  if (suspendedSince !== null) await noteUnseen(deps, suspendedSince);
}

async function ingestOne(deps: Dependencies, delivery: Delivery): Promise<void> {
  const { store, queue } = deps;
  const isNew = await store.deliveries.record(delivery);
  const parsed = Task.safeParse(JSON.parse(delivery.body));
  if (!parsed.success) {
    deps.log.error({ guid: delivery.guid, event: delivery.event }, 'accepted delivery cannot be read');
    return;
  }
  const task = parsed.data;
  if (task.kind === 'installation') {
    const { installationId: id, account, state } = task;
    if (state === 'deleted') {
      await store.installations.remove(id);
      await store.erasures.ask(id, null);
    } else {
      const before = await store.installations.find(id);
      await store.installations.put({ id, account, suspended: state === 'suspended' });
      if (state === 'active') await takeUpInstallation(deps, delivery.guid, id, before?.suspended === true ? before.since : null);
    }
  } else if (task.kind === 'repositories-removed') {
    for (const repoId of task.repoIds) await store.erasures.ask(task.installationId, repoId);
  } else {
    const { id: repoId, owner, name } = task.repository;
    await store.repositories.see({ repoId, installationId: task.installationId, owner, name });
    const { subject, kind, payload } = routeTask(task);
    await store.requests.add({ subject, kind, origin: delivery.guid, payload });
    // The same delivery again, sent by hand: what failed is tried once more, what is done stays done.
    const revived = isNew ? [] : await store.requests.reopen(delivery.guid);
    for (const waiting of new Set([subject, ...revived])) await queue.poke(waiting);
  }
  await store.deliveries.markRouted(delivery.guid);
}

/**
 * Moves accepted deliveries into the requests table. A delivery is let go only after its request is recorded, and recording
 * is by GUID, so a crash anywhere in here neither loses nor doubles it.
 */
export async function ingest(deps: Dependencies, inbox: InboxReader): Promise<number> {
  let count = 0;
  for (;;) {
    const deliveries = await inbox.pending(BATCH);
    if (deliveries.length === 0) return count;
    for (const delivery of deliveries) {
      await ingestOne(deps, delivery);
      await inbox.release(delivery.guid);
      count++;
    }
  }
}
