import { Task } from '../../github/intake.ts';
import type { Delivery, InboxReader } from '../../store/ports.ts';
import type { Dependencies } from './dependencies.ts';
import { routeTask } from './route.ts';

const BATCH = 100;

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
      await store.installations.put({ id, account, suspended: state === 'suspended' });
      // What could not be concluded while the installation was suspended.
      if (state === 'active') await store.checks.hurry(id);
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
