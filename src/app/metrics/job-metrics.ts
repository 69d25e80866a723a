import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Exchange } from '../../github/client.ts';
import type { Depth } from '../../store/depth.ts';
import type { Requests, Store, WorkRequest } from '../../store/ports.ts';
import type { AnalysisRunner } from '../analysis-runner.ts';
import type { Dependencies } from '../jobs/dependencies.ts';
import { boundedLabels } from './bounded-labels.ts';

/** What the jobs of this process do, for Prometheus. No label holds a name of a repository, a branch or a person. */
export interface JobMetrics {
  /** The same parts, counting what goes through them. */
  store(store: Store): Store;
  analysis(runner: AnalysisRunner): AnalysisRunner;
  analysisSlot(slot: Dependencies['analysisSlot']): Dependencies['analysisSlot'];
  readonly timed: Dependencies['timed'];
  onExchange(exchange: Exchange): void;
  /** The exposition; asks the store how much is waiting. */
  text(depth: () => Promise<Depth>): Promise<string>;
}

/** From an answer of GitHub to the analysis of thousands of ranks. */
const SECONDS = [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600];
const MAX_QUOTAS = 2000;
/** Begun work that this many others have followed is not waited for any more. */
const MAX_BEGUN = 1000;

export function createJobMetrics(rules: readonly string[], now: () => number = Date.now): JobMetrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  const jobs = new Counter({
    name: 'npu_advisor_jobs_total',
    help: 'Requests for work that ended a try, by kind and outcome (done, failed: given up, retried, interrupted).',
    labelNames: ['kind', 'outcome'] as const,
    registers,
  });
  const jobSeconds = new Histogram({
    name: 'npu_advisor_job_seconds',
    help: 'Time from the start of a try to its end, by kind.',
    labelNames: ['kind'] as const,
    buckets: SECONDS,
    registers,
  });
  const phases = new Histogram({
    name: 'npu_advisor_phase_seconds',
    help: 'Time of the phases of an analysis (wait: for a free slot, fetch, analyse, publish), by outcome.',
    labelNames: ['phase', 'outcome'] as const,
    buckets: SECONDS,
    registers,
  });
  const running = new Gauge({ name: 'npu_advisor_analyses_running', help: 'Analyses that hold a slot now.', registers });
  const bytes = new Counter({ name: 'npu_advisor_fetched_bytes_total', help: 'Bytes of artifacts that were fetched.', registers });
  const reports = new Counter({
    name: 'npu_advisor_reports_total',
    help: 'Analyses by what the report says.',
    labelNames: ['outcome'] as const,
    registers,
  });
  const findings = new Counter({
    name: 'npu_advisor_findings_total',
    help: 'Findings in new reports, by rule.',
    labelNames: ['rule'] as const,
    registers,
  });
  const requests = new Counter({
    name: 'npu_advisor_github_requests_total',
    help: 'Requests to the API of GitHub by class of status; error: no answer.',
    labelNames: ['status'] as const,
    registers,
  });
  const requestSeconds = new Histogram({
    name: 'npu_advisor_github_request_seconds',
    help: 'Time until the API of GitHub answered.',
    buckets: [0.03, 0.1, 0.3, 1, 3, 10, 30],
    registers,
  });
  const quota = new Gauge({
    name: 'npu_advisor_github_quota_remaining',
    help: 'Requests that are left until the limit is reset, of the installation that has the fewest; by resource of GitHub.',
    labelNames: ['resource'] as const,
    registers,
  });
  const waiting = new Gauge({
    name: 'npu_advisor_requests',
    help: 'Requests for work in the store, shared by all processes: new, retrying, failed (given up, kept for a while).',
    labelNames: ['state'] as const,
    registers,
  });
  const wakeUps = new Gauge({
    name: 'npu_advisor_queue_jobs',
    help: 'Jobs in the queue, shared by all processes: created, retry, active.',
    labelNames: ['state'] as const,
    registers,
  });
  const oldest = new Gauge({
    name: 'npu_advisor_oldest_request_seconds',
    help: 'Age of the oldest request that is not done; 0: none.',
    registers,
  });
  const openChecks = new Gauge({ name: 'npu_advisor_open_checks', help: 'Check runs that are not concluded yet.', registers });

  const kindOf = boundedLabels(30);
  const isRule = new Set(rules);
  const begun = new Map<number, { readonly kind: string; readonly at: number }>();
  const kinds = new Map<number, string>();
  const quotas = new Map<string, { readonly remaining: number; readonly resetAt: number; readonly resource: string }>();
  const resourceOf = boundedLabels(20);

  const end = (id: number, outcome: string): void => {
    const start = begun.get(id);
    begun.delete(id);
    jobs.inc({ kind: start?.kind ?? kinds.get(id) ?? 'other', outcome });
    if (start !== undefined) jobSeconds.observe({ kind: start.kind }, (now() - start.at) / 1000);
  };
  const remember = <Value>(map: Map<number, Value>, id: number, value: Value): void => {
    if (map.size >= MAX_BEGUN) map.delete(map.keys().next().value!);
    map.set(id, value);
  };
  const measure = async <T>(phase: string, body: () => Promise<T>): Promise<T> => {
    const started = now();
    let outcome = 'failed';
    try {
      const value = await body();
      outcome = 'done';
      return value;
    } finally {
      phases.observe({ phase, outcome }, (now() - started) / 1000);
    }
  };

  return {
    store(store) {
      const own: Partial<Requests> = {
        async pending(subject): Promise<readonly WorkRequest[]> {
          const pending = await store.requests.pending(subject);
          for (const { id, kind } of pending) remember(kinds, id, kindOf(kind));
          return pending;
        },
        async begin(ids) {
          for (const id of ids) {
            if (begun.has(id)) end(id, 'retried');
            remember(begun, id, { kind: kinds.get(id) ?? 'other', at: now() });
          }
          await store.requests.begin(ids);
        },
        async uncount(ids) {
          for (const id of ids) end(id, 'interrupted');
          await store.requests.uncount(ids);
        },
        async settle(ids, outcome, note) {
          for (const id of ids) end(id, outcome);
          await store.requests.settle(ids, outcome, note);
        },
      };
      return {
        ...store,
        requests: { ...store.requests, ...own },
        usage: {
          ...store.usage,
          async add(repoId, day, count) {
            bytes.inc(count);
            await store.usage.add(repoId, day, count);
          },
        },
      };
    },
    analysis: (runner) => ({
      ...runner,
      async analyse(request, hooks) {
        const report = await measure('analyse', () => runner.analyse(request, hooks));
        reports.inc({ outcome: report.verdict.outcome });
        for (const { rule } of report.findings) findings.inc({ rule: isRule.has(rule) ? rule : 'other' });
        return report;
      },
    }),
    analysisSlot: (slot) => async (body, need) => {
      const asked = now();
      return slot(async () => {
        phases.observe({ phase: 'wait', outcome: 'done' }, (now() - asked) / 1000);
        running.inc();
        try {
          return await body();
        } finally {
          running.dec();
        }
      }, need);
    },
    timed: measure,
    onExchange({ caller, status, seconds, headers }) {
      requests.inc({ status: status === null ? 'error' : `${Math.floor(status / 100)}xx` });
      requestSeconds.observe(seconds);
      const remaining = Number(headers?.get('x-ratelimit-remaining') ?? Number.NaN);
      const resetAt = Number(headers?.get('x-ratelimit-reset') ?? Number.NaN) * 1000;
      if (!Number.isFinite(remaining) || !Number.isFinite(resetAt)) return;
      const resource = resourceOf(headers?.get('x-ratelimit-resource') ?? 'core');
      if (quotas.size >= MAX_QUOTAS) quotas.delete(quotas.keys().next().value!);
      quotas.set(`${caller} ${resource}`, { remaining, resetAt, resource });
    },
    async text(depth) {
      quota.reset();
      const lowest = new Map<string, number>();
      for (const [key, { remaining, resetAt, resource }] of quotas) {
        if (resetAt < now()) quotas.delete(key);
        else lowest.set(resource, Math.min(remaining, lowest.get(resource) ?? Number.POSITIVE_INFINITY));
      }
      for (const [resource, remaining] of lowest) quota.set({ resource }, remaining);
      const { requests: states, jobs: jobStates, oldestSeconds, openChecks: open } = await depth();
      for (const [state, count] of Object.entries(states)) waiting.set({ state }, count);
      for (const [state, count] of Object.entries(jobStates)) wakeUps.set({ state }, count);
      oldest.set(oldestSeconds);
      openChecks.set(open);
      return registry.metrics();
    },
  };
}
