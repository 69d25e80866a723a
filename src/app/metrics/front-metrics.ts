import type { RequestListener } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { VERSION } from '../../engine/version.ts';
import { WEBHOOK_PATH } from '../../github/front.ts';
import { EVENTS } from '../../github/intake.ts';

/** What the thread that answers requests does, and the process as a whole. */
export interface FrontMetrics {
  /** The same listener, counting webhooks. */
  counted(listener: RequestListener): RequestListener;
  /** `problem`: why the process is not ready, or null. */
  text(problem: string | null): Promise<string>;
}

const NAMES = new Set<string>(EVENTS.map((event) => event.split('.', 1)[0]!));

export function createFrontMetrics(): FrontMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({ name: 'npu_advisor_build_info', help: 'Version that runs; always 1.', labelNames: ['version'], registers }).set(
    { version: VERSION },
    1,
  );
  const ready = new Gauge({ name: 'npu_advisor_ready', help: '1: deliveries are worked on, as /readyz says.', registers });
  const deliveries = new Counter({
    name: 'npu_advisor_webhook_deliveries_total',
    help: 'Webhook deliveries by event and status of the answer; event unverified: refused before its signature was known to be right.',
    labelNames: ['event', 'status'] as const,
    registers,
  });
  const seconds = new Histogram({
    name: 'npu_advisor_webhook_answer_seconds',
    help: 'Time from the arrival of a delivery to the answer. GitHub waits 10 s.',
    buckets: [0.005, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers,
  });
  return {
    counted: (listener) => (request, response) => {
      if (request.url?.startsWith(WEBHOOK_PATH)) {
        const started = performance.now();
        response.once('close', () => {
          const isAccepted = response.writableFinished && response.statusCode < 400;
          const name = String(request.headers['x-github-event']);
          const event = isAccepted ? (NAMES.has(name) ? name : 'other') : 'unverified';
          deliveries.inc({ event, status: response.writableFinished ? String(response.statusCode) : 'hung-up' });
          seconds.observe((performance.now() - started) / 1000);
        });
      }
      return listener(request, response);
    },
    text(problem) {
      ready.set(problem === null ? 1 : 0);
      return registry.metrics();
    },
  };
}
