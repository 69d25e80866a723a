import { closeOnSignal, serve } from '../../../src/app/main.ts';
import { AdviseError } from '../../../src/base/errors.ts';

/** The server as `npu-advise serve` starts it, for tests that need a process to kill. */
try {
  const running = await serve(process.env);
  closeOnSignal(running);
  console.log(`LISTENING ${running.url}`);
} catch (error) {
  console.error(error instanceof AdviseError ? `${error.message}. ${error.hint}` : error);
  process.exit(2);
}
