/** Small parts that several pages share. */
import type { Account, CheckRun, HubState, PullRequest, Repository, WorkflowRun } from '../state.ts';
import { clock } from '../state.ts';
import { type Html, html } from './html.ts';
import { type IconName, icon } from './icons.ts';

/** Address of a repository's pages, on this server. */
export function repositoryPath(repository: Repository): string {
  return `/${repository.owner.login}/${repository.name}`;
}

/** An account's picture: its initials. */
export function avatar(account: Account, small = false): Html {
  const name = account.login.replace(/\[bot\]$/, '');
  const words = name.split(/[-_.]/).filter(Boolean);
  const initials = (words.length > 1 ? `${words[0]?.[0] ?? ''}${words[1]?.[0] ?? ''}` : name.slice(0, 2)).toUpperCase();
  return html`<span class="avatar av${account.id % 8}${account.type === 'Bot' ? ' bot' : ''}${small ? ' small' : ''}" aria-hidden="true">${initials}</span>`;
}

/** An account's name, with the mark of bots. */
export function personName(account: Account): Html {
  const name = account.login.replace(/\[bot\]$/, '');
  return html`<a class="strong" href="/${name}">${name}</a>${account.type === 'Bot' ? html` <span class="label">bot</span>` : ''}`;
}

/** How long ago something was. */
export function when(state: HubState, at: string): Html {
  const seconds = Math.max(0, Math.round((clock(state) - Date.parse(at)) / 1000));
  const units: readonly (readonly [number, string])[] = [
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
  ];
  const unit = units.find(([size]) => seconds >= size);
  const count = unit ? Math.floor(seconds / unit[0]) : 0;
  const text = unit ? `${count} ${unit[1]}${count === 1 ? '' : 's'} ago` : 'now';
  return html`<time datetime="${at}" title="${at}">${text}</time>`;
}

/** How a status or conclusion looks. */
export function outcome(
  status: string,
  conclusion: string | null,
): { icon: IconName; tone: 'success' | 'failure' | 'neutral' | 'pending'; words: string } {
  if (status !== 'completed') return { icon: 'dot', tone: 'pending', words: status === 'in_progress' ? 'In progress' : 'Queued' };
  switch (conclusion) {
    case 'success':
      return { icon: 'check', tone: 'success', words: 'Successful' };
    case 'failure':
    case 'timed_out':
    case 'startup_failure':
      return { icon: 'cross', tone: 'failure', words: conclusion === 'timed_out' ? 'Timed out' : 'Failing' };
    case 'action_required':
      return { icon: 'alert', tone: 'failure', words: 'Action required' };
    case 'skipped':
      return { icon: 'skip', tone: 'neutral', words: 'Skipped' };
    case 'cancelled':
      return { icon: 'skip', tone: 'neutral', words: 'Cancelled' };
    default:
      return { icon: 'dash', tone: 'neutral', words: 'Neutral' };
  }
}

/** The icon of a status or conclusion. */
export function outcomeIcon(status: string, conclusion: string | null): Html {
  const look = outcome(status, conclusion);
  return html`<span class="c-${look.tone}">${icon(look.icon)}<span class="sr">${look.words}</span></span>`;
}

/** The newest check run of each name on the head of a pull request. */
export function headChecks(pull: PullRequest): CheckRun[] {
  const latest = new Map<string, CheckRun>();
  for (const run of pull.repository.checkRuns) if (run.headSha === pull.head.sha) latest.set(run.name, run);
  return [...latest.values()];
}

/** Workflow runs for the head of a pull request. */
export function headRuns(pull: PullRequest): WorkflowRun[] {
  return pull.repository.runs.filter((run) => run.headSha === pull.head.sha);
}
