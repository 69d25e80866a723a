/** The App in a process of its own, as `npu-advise serve` starts it; tells its parent where webhooks go and ends with it. */
import { closeOnSignal, serve } from '../../src/app/main.ts';
import { AdviseError, messageOf } from '../../src/base/errors.ts';

/** What the server tells the demo. */
export type FromServer = { webhookUrl: string } | { failed: string };

function tell(message: FromServer): void {
  process.send?.(message);
}

try {
  const running = await serve(process.env);
  closeOnSignal(running);
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  tell({ webhookUrl: running.webhookUrl });
} catch (error) {
  tell({ failed: error instanceof AdviseError ? `${error.message}. ${error.hint}` : messageOf(error) });
  process.disconnect?.();
  process.exitCode = 2;
}
