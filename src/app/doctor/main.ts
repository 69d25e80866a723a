import { tmpdir } from 'node:os';
import type { Lang } from '../../model/lang.ts';
import { checkGitHub } from './github.ts';
import { checkDataFolder, checkMemory, checkNode, checkProxy, checkTempFolder } from './machine.ts';
import { both, type Outcome, skipped } from './outcome.ts';
import { checkFormat, renderDoctor } from './render.ts';
import { checkSettings } from './settings.ts';
import { checkServer, checkStore } from './store.ts';

/** `npu-advise doctor`: looks at everything, tells it, and gives the exit code. */
export async function runDoctor(
  env: Readonly<Record<string, string | undefined>>,
  how: { readonly format: string; readonly lang: Lang },
  write: (text: string) => void,
): Promise<number> {
  checkFormat(how.format);
  const { out, code } = renderDoctor(await examine(env), how);
  write(out);
  return code;
}

/** Everything a server needs, looked at one by one. Changes nothing; a mistake never hides the next one. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<readonly Outcome[]> {
  const { outcomes, options, credentials } = await checkSettings(env);
  const because = skipped(both('the lines above must be right first', '请先解决上面的问题'));
  const no = (id: string, en: string, zh: string): Outcome => ({ id, title: both(en, zh), ...because });
  const machine = [await checkNode(process.versions.node), await checkProxy(env), await checkTempFolder(tmpdir())];
  if (options === null) {
    return [
      ...outcomes,
      ...machine,
      no('github', 'GitHub', 'GitHub'),
      no('data-folder', 'Data folder', '数据目录'),
      no('store', 'Store', '存储'),
    ];
  }
  const github = credentials === null ? [no('github', 'GitHub', 'GitHub')] : await checkGitHub(credentials, options.apiUrl);
  return [
    ...outcomes,
    ...github,
    ...machine,
    await checkMemory(options),
    await checkDataFolder(options),
    await checkStore(options),
    await checkServer(options),
  ];
}
