/* One thread of `npm run evaluate`: takes scenarios, gives back verdicts. */
import { parentPort } from 'node:worker_threads';
import { type Scenario, verdictOf } from './corpus.ts';
import { evaluateJob } from './grid.ts';

parentPort!.on('message', async (scenario: Scenario) => {
  parentPort!.postMessage(verdictOf(scenario, await evaluateJob(scenario)));
});
