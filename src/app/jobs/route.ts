import type { Task } from '../../github/intake.ts';
import { subjectOf } from './subject.ts';

export interface Routed {
  readonly subject: string;
  readonly kind: string;
  readonly payload: unknown;
}

/** Where a task is worked on. What is said of installations is noted at once and has no subject. */
export function routeTask(task: Exclude<Task, { kind: 'installation' | 'repositories-removed' }>): Routed {
  const { installationId, repository } = task;
  switch (task.kind) {
    case 'run-started':
    case 'run-completed':
      return { subject: subjectOf.run(repository, task.run.id, task.run.attempt), kind: task.kind, payload: { task } };
    case 'head-changed':
    case 'merge-group':
    case 'rerun':
      return { subject: subjectOf.head(repository, task.headSha), kind: task.kind, payload: { task } };
    case 'comment':
      return { subject: subjectOf.comment(repository, task.commentId), kind: task.kind, payload: { task } };
    case 'closed': {
      const payload = { kind: 'close', installationId, repository, pr: task.pr, headSha: task.headSha };
      return { subject: subjectOf.pullRequest(repository, task.pr), kind: 'close', payload };
    }
  }
}
