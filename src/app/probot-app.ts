import type { Probot } from 'probot';
import { parseCommands } from '../commands/parse.ts';
import { EVENTS, toTask } from '../github/intake.ts';
import type { Logger } from '../github/log.ts';
import type { Inbox } from '../store/ports.ts';

export interface AppOptions {
  readonly inbox: Inbox;
  readonly log: Logger;
  /** False: the operator does not serve this repository, written `owner/name`. */
  readonly isServed: (repository: string) => boolean;
  /** Called after a delivery was accepted. */
  readonly onAccepted: () => void;
}

/** The Probot application. A handler keeps what matters of the event, durably, and returns; jobs do the rest. */
export function createApp({ inbox, log, isServed, onAccepted }: AppOptions): (app: Probot) => void {
  return (app) => {
    app.on([...EVENTS], async ({ id, name, payload }) => {
      const event = `${name}.${'action' in payload ? payload.action : ''}`;
      let task: ReturnType<typeof toTask>;
      try {
        task = toTask(event, payload, parseCommands);
      } catch (error) {
        // Signed by GitHub and yet not what its description says: nothing to do for it, and no reason to have it sent again.
        log.warn({ err: error, guid: id, event }, 'delivery lacks what it must have');
        return;
      }
      if (task === null) return;
      if ('repository' in task && !isServed(`${task.repository.owner}/${task.repository.name}`)) {
        log.info({ guid: id, event, repository: task.repository.id }, 'the repository is not among NPU_ADVISOR_REPOSITORIES');
        return;
      }
      const outcome = await inbox.accept({ guid: id, event, receivedAt: Date.now(), body: JSON.stringify(task) });
      log.info({ guid: id, event, outcome }, 'delivery accepted');
      onAccepted();
    });
  };
}
