/*
 * Before-patterns that look right and are not, as they occur in public repositories (rebuilt, not copied). Each was once offered as one
 * click by mistake, or would be by a careless reading. `npm run examine` finds them.
 */
import { describe, expect, test } from 'vitest';
import type { RemedyContext } from '../../src/model/remedy.ts';
import type { Finding } from '../../src/model/report.ts';
import { repository } from './repository.ts';
import { adviceOf } from './situations.ts';

interface Case {
  readonly remedy: string;
  readonly what: string;
  readonly files: Readonly<Record<string, string>>;
  readonly params?: RemedyContext['params'];
  readonly torch?: string;
}

const DDP = 'from torch.nn.parallel import DistributedDataParallel as DDP\n';
const LOADER = 'from torch.utils.data import DataLoader\n';

const OWN = 'def embed(t):\n    return bert(t.npu())\n\ndef load():\n    return TensorDataset(torch.rand(9).npu())\n';

/** Samples that are made on the card, by code out of sight, or with random numbers of their own. */
const SAMPLES_ELSEWHERE: readonly (readonly [what: string, ...lines: string[]])[] = [
  [
    'a function puts the tensors on the card',
    'def load():',
    '    x = torch.randn(9, 9).npu()',
    '    return TensorDataset(x, x)',
    'train_ds = load()',
    'loader = DataLoader(train_ds)',
  ],
  ['a function of another file does', 'import own', 'data = own.load()', 'loader = DataLoader(data)'],
  ['a method does', 'class A:', '    def put(self): return [x.npu()]', '    def run(self):', '        loader = DataLoader(self.put())'],
  ['the collate function is a lambda that copies', 'loader = DataLoader(ds, collate_fn=lambda s: torch.stack(s).npu())'],
  [
    'the collate function is a partial of one that copies',
    'def build(pad, items):',
    '    return torch.stack(items).npu()',
    'loader = DataLoader(ds, collate_fn=partial(build, 0))',
  ],
  [
    'the transform embeds on the card',
    'from torchvision.datasets import ImageFolder',
    'def prep(img):',
    '    return encoder(img.npu()).cpu()',
    'ds = ImageFolder(root, transform=prep)',
    'loader = DataLoader(ds)',
  ],
  [
    'the transform is set afterwards',
    'from torchvision.datasets import ImageFolder',
    'from own import embed',
    'ds = ImageFolder(root)',
    'ds.transform = lambda img: embed(img)',
    'loader = DataLoader(ds)',
  ],
  [
    'a sample is made by a helper that uses the card',
    'from own import embed',
    'class Bag(Dataset):',
    '    def __getitem__(self, i):',
    '        return embed(self.x[i])',
    'loader = DataLoader(Bag())',
  ],
  ['the model that makes samples is handed in', 'net = Net().npu()', 'class Bag(Dataset): pass', 'loader = DataLoader(Bag(net))'],
  ['the data set comes from a package out of sight', 'from corpus import read', 'ds = read("train")', 'loader = DataLoader(ds)'],
  ['tensors come back on the card they were saved from', 'import torch', 'ds = torch.load("train.pt")', 'loader = DataLoader(ds)'],
  ['the data set is handed in, and nobody is seen to do it', 'def train(ds):', '    loader = DataLoader(ds)'],
  ['the data set is handed in from the card', 'def train(ds):', '    loader = DataLoader(ds)', '    return loader', 'train([x.npu()])'],
  ['tensors are on the card unless told otherwise', 'import torch', 'torch.set_default_device("npu:0")', 'loader = DataLoader(ds)'],
  [
    'the data set keeps a generator of its own',
    'class Crops(Dataset):',
    '    def __init__(self, seed):',
    '        self.rng = np.random.default_rng(seed)',
    '    def __getitem__(self, i):',
    '        return self.x[self.rng.integers(0, 9)]',
    'loader = DataLoader(Crops(0))',
  ],
  [
    'the class of the data set has one',
    'class Crops(Dataset):',
    '    rng = random.Random(0)',
    '    def __getitem__(self, i):',
    '        return self.x[self.rng.randrange(9)]',
    'loader = DataLoader(Crops())',
  ],
  [
    'one of several data sets is out of sight',
    'from corpus import read',
    'sets = {k: read(k) for k in names}',
    'loader = DataLoader(sets["a"])',
  ],
  ['the data set is given a generator', 'rng = random.Random(0)', 'loader = DataLoader(Crops(rng))'],
  [
    'a sample draws from a generator of the module',
    'GEN = torch.Generator().manual_seed(1)',
    'class Crops(Dataset):',
    '    def __getitem__(self, i):',
    '        return torch.rand(9, generator=GEN)',
    'loader = DataLoader(Crops())',
  ],
];

const NOT_ONE_CLICK: readonly Case[] = [
  {
    remedy: 'dataloader-workers',
    what: 'samples for a picture are taken from the loader whose loop runs',
    params: { iterator: 'multi' },
    files: {
      'train.py': `import torchvision\n${LOADER}loader = DataLoader(torchvision.datasets.MNIST("data"), num_workers=4)\nfor epoch in range(9):\n    for x, y in loader:\n        step(x, y)\n        if i % 100 == 0:\n            show(next(iter(loader)))\n`,
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'threads of RPC run when the workers are forked',
    params: { iterator: 'single' },
    files: {
      'server/train.py': `import torch.distributed.rpc as rpc\nimport torchvision\n${LOADER}rpc.init_rpc("trainer")\nloader = DataLoader(torchvision.datasets.MNIST("data"), batch_size=32)\n`,
    },
  },
  {
    remedy: 'batch-transfer',
    what: 'the card would be named in a file that also runs under older releases of torch',
    torch: '2.1.0',
    files: {
      'train.py': `import torch\nif torch.__version__ >= "1.8":\n    import torch_npu\n${LOADER}loader = DataLoader(dataset, num_workers=4)\nfor x, y in loader:\n    x = x.to(device)\n    model(x).backward()\n`,
    },
  },
  {
    remedy: 'batch-transfer',
    what: 'the card would be named where the loop also runs on another one',
    torch: '2.1.0',
    files: {
      'data.py': `import torch_npu\n${LOADER}loader = DataLoader(dataset, num_workers=4, pin_memory=True)\n`,
      'train.py':
        'from data import loader\nfor x, y in loader:\n    if args.device == "npu":\n        x = x.to(device)\n    else:\n        x = x.cuda()\n    model(x).backward()\n',
    },
  },
  {
    remedy: 'jit-compile-off',
    what: 'operators are taken out of online compilation one by one',
    params: { calls: 30, hostMs: 80 },
    files: {
      'train.py':
        'import torch\nimport torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile=True)\ntorch.npu.set_option({"FORCE_ACLNN_OP_LIST": "copy_"})\n',
    },
  },
  {
    remedy: 'broadcast-buffers-off',
    what: 'batch norms are converted only behind an option, and every rank evaluates',
    files: {
      'train.py': `import torch\nimport torchvision\n${DDP}
def evaluate(model, loader):
    model.eval()

def main(args):
    model = torchvision.models.resnet50()
    if args.distributed and args.sync_bn:
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = DDP(model, device_ids=[args.gpu])
    evaluate(model, None)
`,
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'the data set is a stream by its name',
    params: { iterator: 'single' },
    files: { 'train.py': `${LOADER}train_iterator = open_data("train")\nloader = DataLoader(train_iterator, batch_size=8)\n` },
  },
  {
    remedy: 'dataloader-workers',
    what: 'the data set comes from a library of streams',
    params: { iterator: 'single' },
    files: {
      'train.py': `${LOADER}from torchtext.datasets import Multi30k\ntrain_data = Multi30k(split="train")\nloader = DataLoader(train_data, batch_size=8)\n`,
    },
  },
  {
    remedy: 'batch-transfer',
    what: 'the loop is the one of evaluation',
    files: {
      'train.py': `${LOADER}
loader = DataLoader(dataset, num_workers=4, pin_memory=True)

def run_validate(loader, model):
    for images, target in loader:
        images = images.to(device)
        model(images)
`,
    },
  },
  {
    remedy: 'batch-transfer',
    what: 'no gradients: the loop does not train',
    files: {
      'train.py': `import torch\n${LOADER}
loader = DataLoader(dataset, num_workers=4, pin_memory=True)

@torch.no_grad()
def collect(model):
    for images, target in loader:
        images = images.to(device)
        model(images)
`,
    },
  },
  {
    remedy: 'batch-transfer',
    what: 'the branch for GPUs does not run on an NPU',
    files: {
      'train.py': `${LOADER}
loader = DataLoader(dataset, num_workers=4, pin_memory=True)
for images, target in loader:
    if args.device == "gpu":
        images = images.cuda()
    model(images).backward()
`,
    },
  },
  {
    remedy: 'batch-transfer',
    what: 'the file evaluates',
    files: {
      'train.py': `${LOADER}loader = DataLoader(dataset, num_workers=4, pin_memory=True)\n`,
      'evaluators.py':
        'def features(loader):\n    for images, names in loader:\n        images = images.to(device)\n        model(images)\n',
    },
  },
  {
    remedy: 'batch-transfer',
    what: 'the batches of this loader stay on the host, those of another one are copied',
    files: {
      'features.py': `${LOADER}
loader = DataLoader(dataset, num_workers=4)
for batch in loader:
    session.run(batch.numpy())
`,
      'train.py': 'def epoch(train_loader):\n    for x, y in train_loader:\n        x = x.to(device)\n        model(x).backward()\n',
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'the file converts a model',
    params: { iterator: 'multi' },
    files: { 'onnx_check.py': `${LOADER}loader = DataLoader(dataset, num_workers=4)\n` },
  },
  {
    remedy: 'dataloader-workers',
    what: 'tensors that were put on the card some lines before',
    params: { iterator: 'single' },
    files: {
      'train.py': `import torch\nfrom torch.utils.data import TensorDataset\n${LOADER}
def run(x, device):
    x = x.to(device)
    copies = torch.stack([x] * 4)
    many = copies.flatten(0, 1)
    data = TensorDataset(many)
    loader = DataLoader(data, batch_size=8)
`,
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'the loader is made again for each epoch',
    params: { iterator: 'multi' },
    files: {
      'train.py': `${LOADER}
def loader_for_epoch(epoch):
    return DataLoader(dataset, batch_size=8, num_workers=4)
`,
    },
  },
  {
    remedy: 'broadcast-buffers-off',
    what: 'batch norms of a library, evaluated by a trainer on all ranks',
    files: {
      'train.py': `import detectron2\nfrom transformers import Trainer\n${DDP}
class Own(Trainer):
    def wrap(self, model):
        return DDP(model, device_ids=[self.args.local_rank])
`,
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'the function that makes the loader is called in every epoch',
    params: { iterator: 'multi' },
    files: {
      'data.py': `${LOADER}
class Samples:
    def train_loader(self, negatives):
        return DataLoader(self.draw(negatives), batch_size=8, num_workers=4)
`,
      'train.py': 'for epoch in range(20):\n    loader = samples.train_loader(4)\n    train(loader)\n',
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'the training changes the data set through its loader',
    params: { iterator: 'multi' },
    files: {
      'data.py': `${LOADER}def loaders():\n    return DataLoader(train_data, batch_size=8, num_workers=4)\n`,
      'train.py': 'for task in tasks:\n    train_loader.dataset.set_config(crop_size=task.size)\n    train(train_loader)\n',
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'the data set keeps a file open and seeks in it',
    params: { iterator: 'single' },
    files: {
      'train.py': `from torch.utils.data import Dataset\n${LOADER}
class Indexed(Dataset):
    def __init__(self, path):
        self.data_file = open(path, "rb", buffering=0)

    def __getitem__(self, i):
        self.data_file.seek(self.offsets[i])
        return self.data_file.read(8)

loader = DataLoader(Indexed("train.bin"), batch_size=8)
`,
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'a list of loaders, one for each stage',
    params: { iterator: 'multi' },
    files: { 'train.py': `${LOADER}loaders = [DataLoader(sets[i], batch_size=8, num_workers=4) for i in range(3)]\n` },
  },
  {
    remedy: 'batch-transfer',
    what: 'a part of the batch may be of a class with its own way to the card',
    files: {
      'lists.py': 'class ImageList:\n    def to(self, device):\n        return ImageList(self.tensors.to(device))\n',
      'train.py': `${LOADER}
loader = DataLoader(dataset, num_workers=4, pin_memory=True)
for images, targets in loader:
    images = images.to(device)
    model(images, targets).backward()
`,
    },
  },
  {
    remedy: 'set-environment',
    what: 'the line has the value already',
    params: { kind: 'symptom', name: 'ASCEND_GLOBAL_LOG_LEVEL' },
    files: { 'run.sh': 'source env.sh\nexport ASCEND_GLOBAL_LOG_LEVEL=3\n' },
  },
  {
    remedy: 'set-environment',
    what: 'the script builds something for inference',
    params: { kind: 'symptom', name: 'ASCEND_GLOBAL_LOG_LEVEL' },
    files: { 'infer/sdk/build.sh': 'export ASCEND_GLOBAL_LOG_LEVEL=0\n' },
  },
  {
    remedy: 'batch-transfer',
    what: 'accelerate hands out batches on the card',
    files: {
      'train.py': `from accelerate import Accelerator\n${LOADER}
loader = DataLoader(dataset, num_workers=4, pin_memory=True)
loader = accelerator.prepare(loader)
for batch in loader:
    x = batch["x"].to(device)
    accelerator.backward(model(x))
`,
    },
  },
  {
    remedy: 'set-environment',
    what: 'a number of threads that somebody chose',
    params: { kind: 'symptom', name: 'OMP_NUM_THREADS' },
    files: { 'run.sh': 'export OMP_NUM_THREADS=4 # number of cores\n' },
  },
  {
    remedy: 'set-environment',
    what: 'the default of the task queue',
    params: { kind: 'symptom', name: 'TASK_QUEUE_ENABLE' },
    files: { 'run.sh': 'export TASK_QUEUE_ENABLE=1\n' },
  },
  {
    remedy: 'keep-layout',
    what: 'a copy before a view: merged dimensions are copied as before, and a later view needs the copy',
    params: { types: 'Transpose' },
    files: {
      'model.py':
        'import torch\n\ndef forward(x):\n    x = x.permute(0, 2, 1, 3).contiguous().view(b, s, -1)\n    return x.view(b * s, -1)\n',
    },
  },
  ...SAMPLES_ELSEWHERE.map(
    ([what, ...lines]): Case => ({
      remedy: 'dataloader-workers',
      what,
      params: { iterator: 'single' },
      files: { 'train.py': `${LOADER}${lines.join('\n')}\nfor b in loader:\n    model(b).backward()\n`, 'own.py': OWN },
    }),
  ),
  {
    remedy: 'dataloader-workers',
    what: 'a data set that holds a lambda, in a repository that spawns its workers',
    params: { iterator: 'single' },
    files: {
      'train.py': `from torchvision import datasets, transforms\n${LOADER}
transform = transforms.Compose([transforms.ToTensor(), transforms.Lambda(lambda x: x.mul(255))])
loader = DataLoader(datasets.ImageFolder("data", transform), batch_size=8)
`,
      'start.py': 'import torch.multiprocessing as mp\nmp.set_start_method("spawn")\n',
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'the function makes the loader of validation, too',
    params: { iterator: 'multi' },
    files: {
      'data.py': `${LOADER}def build(root):\n    return DataLoader(load(root), batch_size=8, num_workers=4)\n`,
      'train.py': 'train_loader = build("a")\nval_loader = build("b")\n',
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'a seed of its own for each start of a worker',
    params: { iterator: 'multi' },
    files: {
      'train.py': `import numpy as np\n${LOADER}
def start_worker(worker):
    np.random.seed(worker)

loader = DataLoader(dataset, batch_size=8, num_workers=4, worker_init_fn=start_worker)
`,
    },
  },
];

/** A data set whose `__getitem__` is this, in a folder of its own. */
const given = (...lines: string[]): string =>
  `from torch.utils.data import Dataset\nclass D(Dataset):\n    def keep(self, i):\n        return self.data[i]\n    def note(self, item):\n        item["seen"] = True\n    def __getitem__(self, i):\n${lines.map((line) => `        ${line}\n`).join('')}`;

describe('workers are not kept', () => {
  const addedTo = (files: Record<string, string>): string[] =>
    adviceOf('dataloader-workers', { source: repository(files), params: { iterator: 'multi' } })!.edits.map(({ after }) => after);
  const train = (rest: string): string => `${LOADER}train_loader = DataLoader(dataset, batch_size=8, num_workers=4)\n${rest}`;

  test.each([
    ['an entry of a list', 'item = self.data[i]', 'item["box"] = [1, 2]', 'return item'],
    ['an entry of an entry', 'for box in self.data[i]["boxes"]:', '    box["area"] = 1', 'return 1'],
    ['the object itself', 'self.count += 1', 'return self.count'],
    ['a cache', 'self.cache[i] = load(i)', 'return self.cache[i]'],
    ['a list that loses its end', 'parts = self.data[i]', 'x = parts.pop()', 'return x'],
    ['a tensor in place', 'x = self.x[i]', 'x.mul_(2)', 'return x'],
    ['an array in place', 'x = self.x[i]', 'x += 1', 'return x'],
    ['an array that shares memory', 'x = torch.from_numpy(self.x[i])', 'x[0] = 1', 'return x'],
    ['what another method gives out', 'item = self.keep(i)', 'item.update(a=1)', 'return item'],
    ['what another method is given', 'self.note(self.data[i])', 'return 1'],
    ['a copy in one branch only', 'item = self.data[i]', 'if i:', '    item = dict(item)', 'item["a"] = 1', 'return item'],
    ['a deletion', 'item = self.data[i]', 'del item["a"]', 'return item'],
    ['shuffled', 'random.shuffle(self.data[i]["order"])', 'return 1'],
  ])('a data set that writes to what it holds: %s', (_, ...lines) => {
    const files = { 'data.py': given(...lines), 'train.py': train('') };
    expect(addedTo(files)).toEqual([]);
    const starts = { 'data.py': given(...lines), 'train.py': `${LOADER}loader = DataLoader(dataset, batch_size=8)\n` };
    for (const { after } of adviceOf('dataloader-workers', { source: repository(starts), params: { iterator: 'single' } })!.edits)
      expect(after).not.toContain('persistent_workers');
  });

  test.each([
    ['a deep copy', 'item = copy.deepcopy(self.data[i])', 'item["box"] = [1, 2]', 'return item'],
    ['a copy of the entry', 'item = self.data[i]', 'item = item.copy()', 'item["a"] = 1', 'return item'],
    ['an object of its own', 'out = {}', 'out["x"] = self.transform(self.data[i])', 'return out'],
    ['an image that is read', 'img = Image.open(self.paths[i])', 'img = self.transform(img)', 'return img, self.labels[i]'],
    ['opened once', 'if self.file is None:', '    self.file = read(self.path)', 'return self.file[i]'],
  ])('one that does not: %s', (_, ...lines) => {
    expect(addedTo({ 'data.py': given(...lines), 'train.py': train('') }).join()).toContain('persistent_workers=True');
  });

  test.each([
    ['one pass over the loader', 'for x, y in train_loader:\n    model(x).backward()\n'],
    ['one call of its function', 'def fit():\n    for x, y in train_loader:\n        model(x).backward()\n\nfit()\n'],
  ])('%s', (_, rest) => {
    expect(addedTo({ 'train.py': train(rest) })).toEqual([]);
  });

  test.each([
    ['an outer loop', 'for lap in range(9):\n    for x, y in train_loader:\n        model(x).backward()\n'],
    [
      'a function called in a loop',
      'def fit(lap):\n    for x, y in train_loader:\n        model(x).backward()\n\nfor lap in range(9):\n    fit(lap)\n',
    ],
  ])('but with %s', (_, rest) => {
    expect(addedTo({ 'train.py': train(rest) })).toHaveLength(1);
  });

  test('the sampler lasts for all iterations', () => {
    const text = `${LOADER}sampler = make_sampler(data, 8, self.max_iters)\nloader = DataLoader(data, batch_sampler=sampler, num_workers=4)\n`;
    expect(addedTo({ 'train.py': text })).toEqual([]);
  });

  test('code that nobody wrote ends the search', () => {
    const sum = Array(5_000).fill('x').join(' + ');
    const dots = `self.data${'[0]'.repeat(3_000)}`;
    const chain = Array.from({ length: 300 }, (_, i) => `    def m${i}(self):\n        return self.m${i + 1}()\n`).join('');
    const files = {
      'data.py': `${given(`y = ${sum}`, `z = ${dots}`, 'return self.m0()')}${chain}`,
      'train.py': train(`for x in train_loader:\n    z = ${sum}\n    x.backward()\n    torch.npu.synchronize()\n`),
    };
    expect(() => addedTo(files)).not.toThrow();
    expect(() => adviceOf('remove-sync', { source: repository(files), params: { kind: 'device' } })).not.toThrow();
  });

  test('a lambda is given to forked workers, which is said', () => {
    const text = `from torchvision import datasets, transforms\n${LOADER}t = transforms.Lambda(lambda x: x.mul(255))\nloader = DataLoader(datasets.ImageFolder("data", t), batch_size=8)\n`;
    const { edits, preconditions } = adviceOf('dataloader-workers', {
      source: repository({ 'train.py': text }),
      params: { iterator: 'single' },
    })!;
    expect(edits.map(({ kind }) => kind)).toEqual(['suggestion']);
    expect(preconditions.map(({ en }) => en).join()).toContain('started by fork');
  });

  test('the release that knows the keyword is a precondition, also for files that serve older ones', () => {
    const text = `import torch\n${LOADER}from torchvision.datasets import ImageFolder\nif torch.__version__ >= "1.8":\n    import torch_npu\nloader = DataLoader(ImageFolder("data"), num_workers=4)\n`;
    const { edits, preconditions } = adviceOf('dataloader-workers', {
      source: repository({ 'train.py': text }),
      params: { iterator: 'multi' },
    })!;
    expect(edits.map(({ after }) => after).join()).toContain('persistent_workers=True');
    expect(preconditions.map(({ en }) => en).join()).toContain('torch 1.7 or newer');
    expect(preconditions.map(({ zh }) => zh).join()).toContain('不低于 1.7');
  });

  test('seeds that are set once are a precondition', () => {
    const text = `${LOADER}def seed_all(i):\n    random.seed(i)\nloader = DataLoader(data, num_workers=4, worker_init_fn=seed_all)\n`;
    const { edits, preconditions } = adviceOf('dataloader-workers', {
      source: repository({ 'train.py': text }),
      params: { iterator: 'multi' },
    })!;
    expect(edits.map(({ kind }) => kind)).toEqual(['comment-only']);
    expect(preconditions.map(({ en }) => en).join()).toContain('its seeds are set once');
  });
});

describe('no one click', () => {
  test.each(NOT_ONE_CLICK)('$remedy: $what', ({ remedy, files, params = {}, torch = '2.7.1' }) => {
    const advice = adviceOf(remedy, { source: repository(files), params, torch });
    expect(advice?.edits.filter(({ kind }) => kind === 'suggestion') ?? []).toEqual([]);
  });
});

test('places are those of training on an NPU, and of the files that the stacks name', () => {
  const files = {
    'train.py': `${DDP}if device.type == "cuda":\n    model = DDP(model)\nelif device.type == "npu":\n    model = DDP(model, device_ids=[0])\n`,
    'visualize.py': `${DDP}model = DDP(model)\n`,
    'model.py': 'import torch\ndef f(x):\n    x[x > 0] = 0\n    return x\n',
    'loss.py': 'import torch\ndef f(x):\n    x[x > 0] = 0\n    return x\n',
  };
  const placesOf = (id: string, over: Parameters<typeof adviceOf>[1], locations: Finding['locations'] = []) =>
    adviceOf(id, { source: repository(files), ...over }, { locations })!.locations.map(({ file, line }) => `${file}:${line}`);
  expect(placesOf('broadcast-buffers-off', {})).toEqual(['train.py:5']);
  expect(placesOf('remove-sync', { params: { kind: 'shape' } })).toEqual(['loss.py:3', 'model.py:3']);
  const stack = [{ file: 'model.py', line: 2, symbol: 'f', provenBy: 'call-stack' as const }];
  expect(placesOf('remove-sync', { params: { kind: 'shape' } }, stack)).toEqual(['model.py:3']);
  const elsewhere = [{ file: 'train.py', line: 2, symbol: null, provenBy: 'call-stack' as const }];
  expect(placesOf('remove-sync', { params: { kind: 'shape' } }, elsewhere)).toEqual([]);
});

test('what happens once in an epoch is no place', () => {
  const files = {
    'train.py':
      'import torch\nfor epoch in range(9):\n    train(model)\n    torch.npu.synchronize()\n    torch.npu.empty_cache()\nfor x in loader:\n    f(x).backward()\n    torch.npu.empty_cache()\n',
  };
  const placesOf = (id: string, params: RemedyContext['params']) =>
    adviceOf(id, { source: repository(files), params })!.locations.map(({ line }) => line);
  expect(placesOf('keep-cached-memory', { releases: 1 })).toEqual([8]);
  expect(placesOf('remove-sync', { kind: 'device' })).toEqual([]);
});

test('loaders of samples and caches, tests in a workflow and loops of validation are no place', () => {
  const files = {
    '.github/workflows/nightly_tests.yml': 'env:\n  OMP_NUM_THREADS: 8\n',
    'train.py': `import torch\n${LOADER}sample_dataloader = DataLoader(a)\ncache_loader = DataLoader(b)\ntrain_loader = DataLoader(c)
def log_validation(prompts):
    for prompt in prompts:
        torch.npu.empty_cache()
`,
  };
  const placesOf = (id: string, params: RemedyContext['params']) =>
    adviceOf(id, { source: repository(files), params })!.locations.map(({ line }) => line);
  expect(placesOf('dataloader-workers', { iterator: 'single' })).toEqual([5]);
  expect(placesOf('set-environment', { kind: 'symptom', name: 'OMP_NUM_THREADS' })).toEqual([]);
  expect(placesOf('keep-cached-memory', { releases: 1 })).toEqual([]);
});

test('nothing is accumulated where an optimizer steps in each pass', () => {
  const loop = (...lines: string[]) => `for i, x in enumerate(loader):\n${lines.map((line) => `    ${line}\n`).join('')}`;
  const placesIn = (text: string) =>
    adviceOf('no-sync-accumulation', { source: repository({ 'train.py': text }), params: { microSteps: 4 } })!.locations.map(
      ({ line }) => line,
    );
  // The generator of a GAN has its turn now and then, and its backward with it.
  const gan = ['loss_d.backward()', 'optimizer_d.step()', 'if i % 5 == 0:', '    loss_g.backward()', '    optimizer_g.step()'];
  expect(placesIn(loop(...gan))).toEqual([]);
  expect(placesIn(loop('loss.backward()', 'if (i + 1) % 4 == 0:', '    optimizer.step()', 'scheduler.step()'))).toEqual([2]);
});

test('a wait around a timer and an array of numpy are not rewritten at all', () => {
  const files = {
    'train.py': `import numpy as np\nimport time\nimport torch
def weigh(a):
    total = np.sum(a, axis=1)
    total[total == 0] = 1.0
for x in loader:
    loss = model(x)
    torch.npu.synchronize()
    forward = time.time()
    loss.backward()
`,
  };
  for (const kind of ['device', 'shape'])
    expect(adviceOf('remove-sync', { source: repository(files), params: { kind } })!.edits, kind).toEqual([]);
});

describe('a wait beside reads of values', () => {
  const waits = (...lines: string[]) => {
    const text = `import torch\nimport torch_npu\nfor i, x in enumerate(loader):\n${['loss = model(x)', 'loss.backward()', 'torch.npu.synchronize()', 'optimizer.step()', ...lines].map((line) => `    ${line}\n`).join('')}`;
    const advice = adviceOf('remove-sync', { source: repository({ 'train.py': text }), params: { kind: 'device' } })!;
    return { kinds: advice.edits.map(({ kind }) => kind), lines: advice.locations.map(({ line }) => line), text: advice.text.en };
  };

  test.each([
    ['a value', 'total += loss.item()'],
    ['a copy', 'keep(loss.detach().cpu())'],
    ['a number', 'total += float(loss)'],
    ['printed', 'print(f"loss {loss}")'],
    ['a list', 'all += loss.tolist()'],
    ['in the arguments of another call', 'meter.update(loss.item(), n)'],
    ['in the condition', 'if not math.isfinite(loss.item()):', '    stop()'],
    ['in all branches', 'if a:', '    v = loss.item()', 'elif b:', '    v = 2 * loss.item()', 'else:', '    v = loss.cpu()'],
  ])('%s: the read is named, and nothing is one click', (_, ...lines) => {
    const seen = waits(...lines);
    expect(seen.kinds).toEqual(['comment-only']);
    expect(seen.lines.slice(0, 2)).toEqual([6, lines.length > 2 ? 9 : 8]);
    expect(seen.text).toMatch(/^Each pass of this loop reads values/);
  });

  test.each([
    ['now and then', 'if i % 100 == 0:', '    print(loss.item())'],
    ['in one branch', 'if debug:', '    v = loss.item()', 'else:', '    v = 0'],
    ['in a function that is only defined', 'def report():', '    return loss.item()'],
    ['a number that is written out', 'best = float("inf")'],
    ['a text', 'print("step")'],
  ])('%s: the wait is the cause', (_, ...lines) => {
    expect(waits(...lines).kinds).toEqual(['suggestion']);
  });
});

test.each([
  ['a parameter', 'def make(data, jobs=4):\n    return DataLoader(data, num_workers=jobs)\nloader = make(data)\n', 'jobs > 0'],
  ['a constant', 'WORKERS = 4\nloader = DataLoader(data, num_workers=WORKERS)\n', 'True'],
])('workers by %s: kept by a value that holds for other callers, too', (_, text, value) => {
  const files = { 'train.py': `import torchvision\n${LOADER}data = torchvision.datasets.MNIST("data")\n${text}` };
  const [edit] = adviceOf('dataloader-workers', { source: repository(files), params: { iterator: 'multi' } })!.edits;
  expect([edit!.kind, edit!.after]).toEqual(['suggestion', expect.stringContaining(`, persistent_workers=${value})`)]);
});

const STILL_ONE_CLICK: readonly Case[] = [
  {
    remedy: 'broadcast-buffers-off',
    what: 'batch norms are converted wherever DDP is used',
    files: {
      'train.py': `import torch\nimport torchvision\n${DDP}
def evaluate(model, loader):
    model.eval()

def main(args):
    model = torchvision.models.resnet50()
    if args.distributed:
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        model = DDP(model, device_ids=[args.gpu])
    evaluate(model, None)
`,
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'images from a folder',
    params: { iterator: 'single' },
    files: {
      'train.py': `import torchvision\n${LOADER}train_set = torchvision.datasets.ImageFolder("data")\nloader = DataLoader(train_set, batch_size=8)\n`,
    },
  },
  {
    remedy: 'dataloader-workers',
    what: 'a class of the repository with a helper, split once, made by a function',
    params: { iterator: 'single' },
    files: {
      'data.py': `import numpy as np\nimport torch\nfrom torch.utils.data import Dataset, random_split
def crop(x):
    return torch.from_numpy(x[:9])

class Crops(Dataset):
    def __init__(self, root, transform=None):
        self.x = np.load(root)
        self.transform = transform
    def __getitem__(self, i):
        return self.transform(crop(self.x[i]))

def build(args, transform):
    full = Crops(args.root, transform)
    train, rest = random_split(full, [0.9, 0.1], generator=torch.Generator().manual_seed(0))
    return train
`,
      'train.py': `from torchvision import transforms\n${LOADER}from data import build
def parse_args():
    parser.add_argument("--device", default="npu:0")
    return parser.parse_args()
def make(train_set):
    return DataLoader(train_set, batch_size=8, shuffle=True)
args = parse_args()
transform = transforms.Compose([transforms.Normalize(0.5, 0.5)])
train_set = build(args, transform)
loader = make(train_set)
`,
    },
  },
  {
    remedy: 'batch-transfer',
    what: 'the loop of training',
    files: {
      'train.py': `${LOADER}
loader = DataLoader(dataset, num_workers=4, pin_memory=True)

def train_epoch(loader, model):
    for images, target in loader:
        images = images.to(device)
        model(images).backward()
`,
    },
  },
];

describe('one click', () => {
  test.each(STILL_ONE_CLICK)('$remedy: $what', ({ remedy, files, params = {} }) => {
    const advice = adviceOf(remedy, { source: repository(files), params });
    expect(advice!.edits.map(({ kind }) => kind)).toEqual(['suggestion']);
  });
});

/** What the loader was given is changed while training; by whatever name it goes. */
const CHANGED_DATA: readonly (readonly [what: string, ...lines: string[]])[] = [
  ['an attribute of the data set', 'for epoch in range(9):', '    trainset.size = 128 + epoch', '    for x in loader: step(x)'],
  ['an attribute of the collate function', 'for epoch in range(9):', '    masker.prob += 0.01', '    for x in loader: step(x)'],
  ['a method of the collate function', 'for epoch in range(9):', '    masker.advance(epoch)', '    for x in loader: step(x)'],
  ['an attribute of the transform', 'while True:', '    crop.size = sizes.pop()'],
  ['an element of the data set', 'for epoch in range(9):', '    trainset[0] = epoch'],
  ['by another name', 'source = trainset', 'for epoch in range(9):', '    source.level(epoch)'],
  ['by another name in a function', 'def grow(epoch):', '    data = loader.dataset', '    data.size = epoch'],
  ['through the loader', 'for epoch in range(9):', '    loader.collate_fn.prob = epoch'],
  ['by a function that is handed it', 'for epoch in range(9):', '    adjust(masker, epoch)'],
  ['with setattr', 'for epoch in range(9):', '    setattr(trainset, "size", epoch)'],
  ['in a hook', 'def on_epoch_start(epoch):', '    masker.prob = epoch'],
  ['one of two targets', 'for epoch in range(9):', '    lr, masker.prob = plan[epoch]'],
];

describe('workers are not kept where their data changes', () => {
  const SET = ['crop = Crop(9)', 'trainset = Images(root, transform=crop)', 'masker = Masker(0.1)'];
  const CALL = 'loader = DataLoader(trainset, collate_fn=masker, num_workers=8)';
  const editsOf = (lines: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    adviceOf('dataloader-workers', {
      source: repository({ 'train.py': `${LOADER}${[...SET, CALL, ...lines].join('\n')}\n`, ...more }),
      params: { iterator: 'multi' },
    })!.edits;

  test.each(CHANGED_DATA)('%s', (_, ...lines) => {
    expect(editsOf(lines)).toEqual([]);
  });

  test('in another file', () => {
    const loop = 'def fit(trainset, loader):\n    for epoch in range(9):\n        trainset.size = epoch\n';
    expect(editsOf([], { 'fit.py': loop })).toEqual([]);
  });

  test('what only reads, another thing of that name, and what is set before the loader is made, keep them', () => {
    const reads = ['for epoch in range(9):', '    print(len(trainset))', '    n = trainset.get_size()', '    for x in loader: step(x)'];
    const other = ['def check():', '    trainset = Probe()', '    trainset.size = 3'];
    for (const lines of [reads, other]) expect(editsOf(lines).map(({ kind }) => kind)).toEqual(['suggestion']);
    const files = { 'train.py': `${LOADER}${[...SET, 'trainset.size = 9', CALL].join('\n')}\n` };
    const before = adviceOf('dataloader-workers', { source: repository(files), params: { iterator: 'multi' } })!;
    expect(before.edits.map(({ kind }) => kind)).toEqual(['suggestion']);
  });
});
