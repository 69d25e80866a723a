import { describe, expect, test } from 'vitest';
import { settingsIn, settingsOf } from '../../src/source/launch/settings.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';

const read = (path: string, text: string): string[] =>
  settingsIn(sourceTreeFrom({ files: [[path, text]] }), path).map(
    ({ name, value, line, text: own, column, isDefault }) =>
      `${line}: ${name}=${own.slice(column, column + value.length)}${isDefault ? ' by default' : ''}`,
  );

describe('what a launch script sets', () => {
  test.each<[what: string, path: string, text: string, settings: string[]]>([
    ['export', 'run.sh', '#!/bin/bash\nexport A_B=1\n', ['2: A_B=1']],
    ['several in one export', 'run.sh', 'export A_B=1 C_D="x.y" E_F=\'2\'', ['1: A_B=1', '1: C_D=x.y', '1: E_F=2']],
    ['in front of a command', 'run.sh', 'A_B=1 C_D=2 torchrun train.py --n_x=3', ['1: A_B=1', '1: C_D=2']],
    ['over several lines', 'run.sh', 'A_B=1 \\\n  C_D=2 \\\n  torchrun --nnodes=2 \\\n  train.py', ['1: A_B=1', '2: C_D=2']],
    ['CRLF and a long export', 'run.sh', 'export A_B=1 \\\r\n  C_D=2\r\n', ['1: A_B=1', '2: C_D=2']],
    [
      'a value that the caller may override',
      'run.sh',
      'export A_B=\u0024{A_B:-1}\n: "\u0024{C_D:=2}"',
      ['1: A_B=1 by default', '2: C_D=2 by default'],
    ],
    ['in quotes as a whole', 'run.sh', 'export "A_B=1"', ['1: A_B=1']],
    ['after && and in a loop', 'run.sh', 'cd x && export A_B=1; for i in 1 2; do C_D=2 python a.py; done', ['1: A_B=1', '1: C_D=2']],
    ['assigned, exported later', 'run.sh', 'A_B=1\nC_D=2\nexport A_B', ['1: A_B=1']],
    ['set -a exports all', 'run.sh', 'set -a\nA_B=1', ['2: A_B=1']],
    ['declare -x', 'run.sh', 'declare -x A_B=1\ndeclare C_D=2', ['1: A_B=1']],
    ['env with an option', 'run.sh', 'env -u X A_B=1 python a.py', ['1: A_B=1']],
    ['env with variables only', 'run.sh', 'env A_B=1 C_D=2 python a.py E_F=3', ['1: A_B=1', '1: C_D=2']],
    ['csh', 'run.sh', 'setenv A_B 1', ['1: A_B=1']],
    ['a container', 'run.sh', 'docker run --rm -e A_B=1 --env C_D=2 --env=E_F=3 -v G_H=4 image', ['1: A_B=1', '1: C_D=2', '1: E_F=3']],
    ['mpirun', 'run.sh', 'mpirun -np 8 -x A_B=1 -x PATH python a.py', ['1: A_B=1']],
    ['slurm', 'run.sh', 'srun --export=ALL,A_B=1,C_D=2 python a.py', ['1: A_B=1', '1: C_D=2']],
    ['a job file', 'job.sbatch', '#SBATCH -N 2\nexport A_B=1', ['2: A_B=1']],
    ['an allocator value', 'run.sh', 'export A_B=expandable_segments:True', ['1: A_B=expandable_segments:True']],
    ['a shell variable', 'run.sh', 'A_B=1\npython a.py', []],
    ['a comment', 'run.sh', '# export A_B=1\necho x # A_B=1', []],
    ['a value from elsewhere', 'run.sh', 'export A_B=$X\nexport C_D=$(nproc)\nexport E_F=`nproc`', []],
    ['a here document', 'run.sh', 'cat <<EOF > x\nexport A_B=1\nEOF\nexport C_D=2', ['4: C_D=2']],
    ['text in quotes', 'run.sh', 'echo "export A_B=1"\necho \'x\nexport C_D=2\'', []],
    ['an option that looks like one', 'run.sh', 'python a.py A_B=1 --C_D=2', []],
    [
      'a debug branch',
      'run.sh',
      'if [ "$DEBUG" = 1 ]; then\n  export A_B=1\nelse\n  export C_D=2\nfi\nexport E_F=3',
      ['4: C_D=2', '6: E_F=3'],
    ],
    ['a comment that says debug', 'run.sh', '# for debugging only\nexport A_B=1\n\nexport C_D=2', ['4: C_D=2']],
    ['a comment in Chinese', 'run.sh', '# 调试用\nexport A_B=1', []],
    ['a debug file', 'debug_run.sh', 'export A_B=1', []],
    ['ENV with =', 'Dockerfile', 'FROM x\nENV A_B=1 C_D="2"\nRUN E_F=3 make', ['2: A_B=1', '2: C_D=2']],
    ['the old ENV', 'docker/Dockerfile.npu', 'ENV A_B 1', ['1: A_B=1']],
    ['ENV over several lines', 'Dockerfile', 'ENV A_B=1 \\\n    # why\n    C_D=2\nENV E_F=3', ['1: A_B=1', '3: C_D=2', '4: E_F=3']],
    ['CMD', 'Dockerfile', 'CMD A_B=1 python a.py\nCMD ["python", "C_D=1"]', ['1: A_B=1']],
    ['a comment in a Dockerfile', 'Dockerfile', '# ENV A_B=1', []],
    ['env of a workflow', '.github/workflows/ci.yml', 'env:\n  A_B: "1"\njobs:\n  x:\n    env: { C_D: 2 }\n', ['2: A_B=1', '5: C_D=2']],
    [
      'a script in a workflow',
      'ci.yml',
      'jobs:\n  x:\n    steps:\n      - run: |\n          export A_B=1\n          C_D=2 python a.py\n      - run: E_F=3 make\n',
      ['5: A_B=1', '6: C_D=2', '7: E_F=3'],
    ],
    [
      'compose',
      'compose.yaml',
      'services:\n  x:\n    environment:\n      - A_B=1\n      - "C_D=2"\n  y:\n    environment:\n      E_F: 3\n',
      ['4: A_B=1', '5: C_D=2', '8: E_F=3'],
    ],
    ['Kubernetes', 'pod.yaml', 'env:\n  - name: A_B\n    value: "1"\n  - name: C_D\n    valueFrom: x\n', ['3: A_B=1']],
    ['two documents', 'pods.yaml', 'env: {A_B: 1}\n---\nenv: {C_D: 2}\n', ['1: A_B=1', '3: C_D=2']],
    ['an expression', 'ci.yml', 'env:\n  A_B: \u0024{{ matrix.x }}\n', []],
    ['a comment in YAML', 'ci.yml', 'env:\n  # A_B: 1\n  X: "y" # C_D: 2\n', []],
    ['a description', 'ci.yml', 'description: A_B=1 helps\n', []],
    [
      'Python',
      'train.py',
      'import os\nos.environ["A_B"] = "1"\nos.environ.setdefault("C_D", str(2))\nos.putenv("E_F", "3")\n',
      ['2: A_B=1', '3: C_D=2 by default', '4: E_F=3'],
    ],
    [
      'a dictionary for another process',
      'train.py',
      'run(x, env={"A_B": "1", **e})\nos.environ.update(C_D="2")\n',
      ['1: A_B=1', '2: C_D=2'],
    ],
    ['a string that shows how', 'train.py', 'HELP = """os.environ["A_B"] = "1" """\n# os.environ["C_D"] = "2"\n', []],
    ['a read', 'train.py', 'x = os.environ.get("A_B", "1")\nif os.environ["C_D"] == "2": pass\n', []],
    ['a debug function', 'train.py', 'def debug_env():\n    os.environ["A_B"] = "1"\n', []],
    ['TOML', 'pixi.toml', '[activation.env]\nA_B = "1"\n# C_D = "2"\n', ['2: A_B=1']],
    ['a plain text file', 'notes.toml.txt', 'export A_B=1', []],
    ['broken YAML', 'ci.yml', 'env: [\n  A_B: "1"\n: : :\n\t- x', ['2: A_B=1']],
    ['a quote that never ends', 'run.sh', 'export A_B=1\nexport C_D="2\nexport E_F=3\n', ['1: A_B=1']],
    ['only punctuation', 'run.sh', '<<<>>>((( $( ${ "" && ;; \\', []],
  ])('%s', (_, path, text, settings) => expect(read(path, text)).toEqual(settings));

  test('hostile files end soon', () => {
    const started = performance.now();
    for (const [path, text] of [
      ['a.sh', 'X=$('.repeat(40_000)],
      ['b.sh', `export ${'A=1 '.repeat(40_000)}`],
      ['c.sh', 'if a; then\n'.repeat(15_000)],
      ['d.yml', '['.repeat(50_000)],
      ['e.yml', Array.from({ length: 300 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
      ['f.yml', `a: &a [x]\n${Array.from({ length: 500 }, (_, i) => `b${i}: [*a, *a, *a]`).join('\n')}`],
      ['g.yml', 'a: 1\n'.repeat(100_000)],
      ['Dockerfile', 'ENV \\\n'.repeat(20_000)],
    ] as const)
      expect(read(path, text).length).toBeLessThanOrEqual(2_000);
    expect(performance.now() - started).toBeLessThan(40_000);
  });

  test('the order is that of the files; tests are left out', () => {
    const tree = sourceTreeFrom({
      files: [
        ['b.sh', 'export A_B=2'],
        ['a.sh', 'export A_B=1\nexport OTHER_X=A_B'],
        ['tests/a.sh', 'export A_B=3'],
      ],
    });
    expect(settingsOf(tree, 'A_B').map(({ file, value }) => `${file} ${value}`)).toEqual(['a.sh 1', 'b.sh 2']);
  });
});
