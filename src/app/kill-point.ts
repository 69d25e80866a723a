/** Places where a test may kill the process, in the order a job reaches them. */
export const KILL_POINTS = [
  'after-delivery-accepted',
  'job-started',
  'config-read',
  'artifact-listed',
  'during-download',
  'after-download',
  'during-analysis',
  'before-comment',
  'after-comment-created',
  'between-comment-and-check',
  'after-check-updated',
  'after-suggestions',
] as const;
export type KillPoint = (typeof KILL_POINTS)[number];

/** Dies like a machine that loses power, at one named point. Without a name it does nothing. */
export function createKillPoint(killAt: string | null): (point: KillPoint) => void {
  return (point) => {
    if (point === killAt) process.kill(process.pid, 'SIGKILL');
  };
}
