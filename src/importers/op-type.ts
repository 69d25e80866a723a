/**
 * Level0 writes no op type. Names still carry it: `aclnnX_Y_Type` → Type, `trans_TransData_12` → TransData, `Conv2D1` → Conv2D.
 * A trailing digit is dropped only when what remains is a known type and the whole is not.
 */
import { trailingDigits } from '../base/endings.ts';

const ENDS_IN_DIGIT = new Set([
  'Conv2D',
  'Conv3D',
  'MatMulV2',
  'MatMulV3',
  'BatchMatMulV2',
  'BatchMatMulV3',
  'GatherV2',
  'GatherV3',
  'SoftmaxV2',
  'LogSoftmaxV2',
  'MaxPoolWithArgmaxV1',
  'MaxPoolGradWithArgmaxV1',
  'AdaptiveAvgPool2d',
  'MaxPool2d',
  'DropOutDoMaskV3',
  'LayerNormV3',
  'LayerNormV4',
  'ConcatV2',
  'SplitV2',
  'TopKV2',
  'StridedSliceV2',
  'OnesLikeV2',
]);

export function opTypeFromName(name: string): string {
  let base = name;
  const numbered = /^(.*?)_\d+$/.exec(base);
  if (numbered !== null) base = numbered[1]!;
  const parts = base.split('_');
  let type = parts[parts.length - 1]!;
  if (type === '' && parts.length > 1) type = parts[parts.length - 2]!;
  if (!ENDS_IN_DIGIT.has(type)) {
    const stripped = type.slice(0, type.length - trailingDigits(type).length);
    if (stripped !== '') type = ENDS_IN_DIGIT.has(stripped) || !/\dD$/.test(type) ? stripped : type;
  }
  return type;
}
