import { Command, CommanderError } from 'commander';
import { AdviseError, messageOf } from '../base/errors.ts';
import { VERSION } from '../engine/version.ts';
import type { Lang } from '../model/lang.ts';
import { type AnalyzeOptions, analyze } from './analyze.ts';
import { digest } from './digest.ts';
import { validateConfig } from './load-config.ts';
import { type PatchOptions, patch } from './patch.ts';
import { explainRule, listRules } from './rules.ts';

const UNUSABLE = 2;

function lang(value: string | undefined): Lang {
  return value === 'zh' ? 'zh' : 'en';
}

const program = new Command('npu-advise')
  .description(
    'Reads Ascend NPU profiles of multi-card PyTorch training and says what the cards waited for, what it costs per step and what to change.',
  )
  .version(VERSION)
  .exitOverride()
  .configureOutput({ outputError: () => undefined });

program
  .command('analyze')
  .description('diagnose one job: a profile folder, zip or tar.gz; several paths are the ranks of one job; none: only --source is read')
  .argument('[path...]')
  .option(
    '--baseline <path>',
    'profile or facts.json to compare with; give it again for repeats of the same unchanged job',
    (path: string, all: string[]) => [...all, path],
    [],
  )
  .option('--source <dir>', 'repository of the training script, to place advice on its lines; by itself: what is wrong on NPUs')
  .option('--config <file>', 'npu-advisor.yml with thresholds and gate')
  .option('--format <format>', 'text, json, md, html or sarif', 'text')
  .option('--out <file>', 'write there instead of standard output')
  .option('--lang <lang>', 'en or zh')
  .action(async (paths: string[], options: AnalyzeOptions) => {
    process.exitCode = await analyze(paths, options);
  });

program
  .command('patch')
  .description('all changes to the source as one unified diff: `npu-advise patch PROFILE --source . | git apply`')
  .argument('[path...]')
  .requiredOption('--source <dir>', 'repository of the training script; the paths of the diff are relative to it')
  .option(
    '--baseline <path>',
    'profile or facts.json to compare with; give it again for repeats of the same unchanged job',
    (path: string, all: string[]) => [...all, path],
    [],
  )
  .option('--config <file>', 'npu-advisor.yml with thresholds')
  .option('--out <file>', 'write there instead of standard output')
  .option('--lang <lang>', 'en or zh')
  .action(async (paths: string[], options: PatchOptions) => {
    await patch(paths, options);
  });

program
  .command('digest')
  .description('keep what `analyze` needs of a profile in one small file, for runners that cannot upload gigabytes')
  .argument('<path...>')
  .requiredOption('--out <file>', 'file to write, e.g. facts.json')
  .option('--lang <lang>', 'en or zh')
  .action(async (paths: string[], options: { out: string; lang?: string }) => {
    process.stdout.write(await digest(paths, options.out, lang(options.lang)));
  });

program
  .command('rules')
  .description('list the checks')
  .option('--format <format>', 'text or json', 'text')
  .option('--lang <lang>', 'en or zh')
  .action((options: { format: string; lang?: string }) => {
    process.stdout.write(listRules(options.format, lang(options.lang)));
  });

program
  .command('explain')
  .description('what a check measures, its thresholds and when not to use it')
  .argument('<rule>')
  .option('--lang <lang>', 'en or zh')
  .action(async (id: string, options: { lang?: string }) => {
    process.stdout.write(await explainRule(id, lang(options.lang)));
  });

program
  .command('config')
  .description('work with .github/npu-advisor.yml')
  .command('validate')
  .description('check a configuration file; further files are what it extends, nearest first')
  .argument('<file...>')
  .option('--format <format>', 'text, json, or github for annotations of a workflow run', 'text')
  .option('--lang <lang>', 'en or zh')
  .action(async (files: string[], options: { format: string; lang?: string }) => {
    const { out, code } = await validateConfig(files, { format: options.format, lang: lang(options.lang) });
    process.stdout.write(out);
    process.exitCode = code;
  });

program
  .command('action')
  .description('run as a step of a GitHub workflow (see action.yml and docs/actions.md)')
  .action(async () => {
    // Nothing but the action itself is to find the token.
    const env = { ...process.env };
    delete process.env.INPUT_TOKEN;
    const { runAction, describeFailure } = await import('../app/action/main.ts');
    const { workflowCommand } = await import('../render/workflow-command.ts');
    try {
      process.exitCode = await runAction(env, (text) => process.stdout.write(text));
    } catch (error) {
      process.stdout.write(`${workflowCommand('error', null, describeFailure(error), 'NPU Advisor')}\n`);
      process.exitCode = UNUSABLE;
    }
  });

program
  .command('history')
  .description('figures of the profiles a server keeps')
  .command('export')
  .description('write them all, oldest first; a server with the embedded store must be stopped')
  .option('--repo <repository>', 'owner/name, or its number')
  .option('--job <job>', 'name of a job in the settings; `default` without jobs')
  .option('--format <format>', 'json or csv', 'json')
  .action(async (options: { repo?: string; job?: string; format: string }) => {
    const { exportHistory } = await import('../app/history-export.ts');
    const { repo = null, job = null, format } = options;
    await exportHistory(process.env, { repository: repo, job, format }, (text) => process.stdout.write(text));
  });

program
  .command('serve')
  .description('run the GitHub App (see docs/operate.md)')
  .action(async () => {
    const { serve, closeOnSignal } = await import('../app/main.ts');
    closeOnSignal(await serve());
  });

program
  .command('worker')
  .description('run jobs only, beside `serve`, on a shared PostgreSQL (DATABASE_URL)')
  .action(async () => {
    const { work, closeOnSignal } = await import('../app/main.ts');
    closeOnSignal(await work());
  });

/** Known errors are one line with what to do; anything else is a defect and shows its stack. */
function fail(error: unknown): void {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return;
    process.stderr.write(`npu-advise: ${error.message.replace(/^error: /, '').replaceAll(/\s+/g, ' ')}; see npu-advise --help\n`);
  } else if (error instanceof AdviseError) {
    process.stderr.write(`npu-advise: ${error.message.replaceAll(/\s+/g, ' ')}. ${error.hint.replaceAll(/\s+/g, ' ')}\n`);
  } else {
    process.stderr.write(`npu-advise: unexpected: ${messageOf(error)}\n${error instanceof Error ? (error.stack ?? '') : ''}\n`);
  }
  process.exitCode = UNUSABLE;
}

try {
  await program.parseAsync(process.argv);
} catch (error) {
  fail(error);
}
