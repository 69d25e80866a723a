/**
 * Where GitHub's own description does not fit what GitHub sends. Short, dated, with reasons; everything else that does not fit is a
 * violation.
 */
export interface Exception {
  since: string;
  /** Operation id or `webhook:NAME`; `*` for all. */
  where: string;
  /** Tested against the fault, e.g. `/2/line must be integer`. */
  fault: RegExp;
  reason: string;
}

/** Statuses any operation may answer; the description lists them only here and there. */
export const universalStatuses: readonly number[] = [304, 400, 401, 403, 404, 409, 410, 415, 422, 429, 500, 502, 503, 504];

/** The list. */
export const exceptions: readonly Exception[] = [
  {
    since: '2026-11-30',
    where: '*',
    fault: /^\/status is not described$/,
    reason: 'Every error body carries "status" (as text); validation-error and validation-error-simple do not declare it.',
  },
  {
    since: '2026-11-30',
    where: 'pulls/list-review-comments',
    fault: /\/line must be integer$/,
    reason: 'An outdated comment has "line": null; the description allows null for start_line only.',
  },
  {
    since: '2026-11-30',
    where: 'pulls/get-review-comment',
    fault: /^\/line must be integer$/,
    reason: 'As above.',
  },
  {
    since: '2026-11-30',
    where: 'pulls/list-comments-for-review',
    fault: /\/line must be integer$/,
    reason: 'As above.',
  },
  {
    since: '2026-11-30',
    where: '*',
    fault: /\/(head\/repo|head_repository) must be object$/,
    reason: 'Null once the fork was deleted (github/rest-api-description#161 and #1586).',
  },
  {
    since: '2026-11-30',
    where: 'apps/list-installations',
    fault: /^\/\d+\/(account|client_id|permissions\/)/,
    reason:
      'Carries an older copy of the installation, whose account must be a user and an enterprise at once; "get an installation" is right.',
  },
  {
    since: '2026-11-30',
    where: 'webhook:workflow-run-in-progress',
    fault: /\/(display_title|user_view_type) is not described$/,
    reason: 'Carries an older copy of the run and of users; "requested" and "completed" declare both.',
  },
  {
    since: '2026-11-30',
    where: 'webhook:check-suite-rerequested',
    fault: /^\/check_suite\/app\/events\/\d+ must be equal to one of the allowed values$/,
    reason: 'The list of events an app can subscribe to lacks merge_group; "requested" has it.',
  },
  {
    since: '2026-11-30',
    where: 'webhook:check-suite-completed',
    fault: /^\/check_suite\/app\/permissions\/merge_queues is not described$/,
    reason: 'The list of permissions lacks merge_queues; "requested" has it.',
  },
];

/** Whether a fault is a known one. */
export function excepted(where: string, fault: string): boolean {
  return exceptions.some((exception) => (exception.where === '*' || exception.where === where) && exception.fault.test(fault));
}
