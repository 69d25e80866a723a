/** The shipped example: the profile that the CI run of the pull request uploads, simulated when the demo starts. */
import { type CodeMap, type CodeSite, type JobSpec, simulate, writeProfiles } from '../simulator/index.ts';
import { baseFiles, type Files, headFiles, lineOf } from './repository.ts';

/** Where the job ran, as its call stacks name it. */
const WORKSPACE = '/workspace/bert-npu';

/** Call sites of the training script, looked up in its text. */
function codeMap(files: Files): CodeMap {
  const at = (file: string, text: string, func: string): CodeSite => ({
    file: `${WORKSPACE}/${file}`,
    line: lineOf(files, file, text),
    func,
  });
  const inTrain = (text: string): CodeSite => at('train.py', text, 'train');
  const inLayer = (text: string): CodeSite => at('bert/model.py', text, 'forward');
  return {
    loader: inTrain('in enumerate(loader)'),
    h2d: inTrain('tokens.to(device'),
    zeroGrad: inTrain('optimizer.zero_grad()'),
    ddp: inTrain('logits = model(tokens)'),
    forward: inLayer('self.down(F.gelu('),
    compile: inLayer('self.scale * self.attend('),
    layout: inLayer('self.scale * self.attend('),
    prepare: inTrain('in enumerate(loader)'),
    check: inLayer('self.scale * self.attend('),
    loss: inTrain('loss = criterion('),
    backward: inTrain('loss.backward()'),
    item: inTrain('loss.item()'),
    optimizerStep: inTrain('optimizer.step()'),
    smallOps: inTrain('optimizer.step()'),
    main: at('train.py', '        train(args, model, ', 'main'),
    module: at('train.py', '    main()', '<module>'),
  };
}

/** The job of the pull request: operators compiled in the loop, buffers sent in every forward, gradients in every micro batch. */
export function exampleJob(ranks: number): JobSpec {
  return {
    ranks,
    era: '2025-11',
    soc: 'Ascend910B2',
    code: codeMap({ ...baseFiles('en'), ...headFiles() }),
    faults: [
      { kind: 'recompile' },
      // one table of 5,120 positions in each of the 12 layers
      { kind: 'buffer-broadcast', buffers: 12 },
      { kind: 'sync-per-microstep', microSteps: 4 },
    ],
  };
}

/** Writes the profiles of all ranks below a folder. */
export async function writeExample(ranks: number, folder: string): Promise<void> {
  await writeProfiles(simulate(exampleJob(ranks)), folder);
}
