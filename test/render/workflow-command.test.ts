import { expect, it } from 'vitest';
import { inertText, workflowCommand } from '../../src/render/workflow-command.ts';

const PLACE = { file: 'a,b:c%\n.py', line: 3, column: 2, endColumn: 9 };

it.each([
  [workflowCommand('error', null, 'plain'), '::error::plain'],
  [
    workflowCommand('warning', { ...PLACE, file: 'a.py', column: null }, 'x', 'a: b, c'),
    '::warning file=a.py,line=3,endColumn=9,title=a%3A b%2C c::x',
  ],
  [
    workflowCommand('notice', PLACE, '50 %\r\n::set-output name=x::y'),
    '::notice file=a%2Cb%3Ac%25%0A.py,line=3,col=2,endColumn=9::50 %25%0D%0A::set-output name=x::y',
  ],
  [workflowCommand('error', { ...PLACE, file: 'a.py', line: null }, 'x'), '::error file=a.py::x'],
])('a command is one line whatever is in it: %s', (made, expected) => {
  expect(made).toBe(expected);
  expect(made).not.toMatch(/[\r\n]/);
});

it('text of others stands where commands are not obeyed', () => {
  expect(inertText('::add-mask::x\n::error::y\n', 'T')).toBe('::stop-commands::T\n::add-mask::x\n::error::y\n::T::\n');
});
