// Typed arrays, ECMA-262 23.2. Element types are numbered as `ElementType` is.

// Elements that one call of a native handles, so that a run can be suspended between two calls.
function Piece(from, to) { return to - from > 16384 ? from + 16384 : to; }

// The number of elements of a typed array that is in bounds.
function CountOf(value) {
  const count = $elementCount(value);
  if (count === undefined) $typeError($shown(value) + " is not a typed array");
  if (count < 0) OutOfBounds();
  return count;
}

// A value that `$putElement` must convert first.
function PutElement(array, key, value) { $putElement(array, key, value); }

// `[[DefineOwnProperty]]` of an element with a value that user code converts.
function DefineElement(o, key, d) {
  const rest = $create(null);
  if ("configurable" in d) rest.configurable = d.configurable;
  if ("enumerable" in d) rest.enumerable = d.enumerable;
  if ("writable" in d) rest.writable = d.writable;
  if ("get" in d || "set" in d || !$defineOwn(o, key, rest)) return false;
  $putElement(o, key, d.value);
  return true;
}

function TypedArray_() { $typeError("Abstract class TypedArray not directly constructable"); }

function Allocate(type, target, count) {
  const proto = ProtoFor(target, $elementProto(type));
  return $viewNew(type, proto, $bufferNew($$ARRAY_BUFFER_PROTO, count * $elementSize(type), undefined), 0, count);
}

function NewTypedArray(type, target, args) {
  if (target === undefined) $typeError("Constructor " + $elementName(type) + " requires 'new'");
  const first = args[0];
  if (!$isObject(first)) {
    const count = $toIndex(first, "typed array length");
    return Allocate(type, target, count);
  }
  if ($bufferLength(first) !== undefined) return OverBuffer(type, target, first, args[1], args[2]);
  const proto = ProtoFor(target, $elementProto(type));
  if ($elementCount(first) !== undefined) {
    const count = CountOf(first);
    const made = FromProto(type, proto, count);
    if ($isBigArray(first) !== $isBigArray(made)) $typeError("Cannot mix BigInt and other types, use explicit conversions");
    CopyElements(made, 0, first, 0, count);
    return made;
  }
  const method = first[$$SYM_ITERATOR];
  if (method !== undefined && method !== null) {
    const list = ListByMethod(first, method);
    const made = FromProto(type, proto, list.length);
    for (let i = 0; i < list.length; i++) made[i] = list[i];
    return made;
  }
  const count = $toLength(first.length);
  const made = FromProto(type, proto, count);
  for (let i = 0; i < count; i++) made[i] = first[i];
  return made;
}

function FromProto(type, proto, count) {
  return $viewNew(type, proto, $bufferNew($$ARRAY_BUFFER_PROTO, count * $elementSize(type), undefined), 0, count);
}

// `IteratorToList` with this method.
function ListByMethod(items, method) {
  if (!$isCallable(method)) $typeError($shown(items) + " is not iterable");
  if (method === $$ARRAY_VALUES && $iteratesPlainly(items)) {
    const copy = $denseCopy(items);
    if (copy !== undefined) return copy;
  }
  const it = OpenIterator(items, method);
  const list = [];
  while (true) {
    const step = $call(it[1], it[0]);
    if (!$isObject(step)) $typeError("Iterator result " + $shown(step) + " is not an object");
    if (step.done) return list;
    $push(list, step.value);
  }
}

function OverBuffer(type, target, buffer, byteOffset, length) {
  const proto = ProtoFor(target, $elementProto(type));
  const size = $elementSize(type);
  const offset = $toIndex(byteOffset, "offset");
  if (offset % size !== 0) $rangeError("start offset of " + $elementName(type) + " should be a multiple of " + size);
  const count = length === undefined ? undefined : $toIndex(length, "typed array length");
  const bytes = $bufferLength(buffer);
  if (bytes < 0) OutOfBounds();
  if (count !== undefined) {
    if (offset + count * size > bytes) $rangeError("Invalid typed array length: " + count);
    return $viewNew(type, proto, buffer, offset, count);
  }
  if ($bufferMax(buffer) !== undefined) {
    if (offset > bytes) $rangeError("Start offset " + offset + " is outside the bounds of the buffer");
    return $viewNew(type, proto, buffer, offset, undefined);
  }
  if (bytes % size !== 0) $rangeError("byte length of " + $elementName(type) + " should be a multiple of " + size);
  if (offset > bytes) $rangeError("Start offset " + offset + " is outside the bounds of the buffer");
  return $viewNew(type, proto, buffer, offset, (bytes - offset) / size);
}

function Int8Array_(...args) { return NewTypedArray(1, new.target, args); }
function Uint8Array_(...args) { return NewTypedArray(2, new.target, args); }
function Uint8ClampedArray_(...args) { return NewTypedArray(0, new.target, args); }
function Int16Array_(...args) { return NewTypedArray(3, new.target, args); }
function Uint16Array_(...args) { return NewTypedArray(4, new.target, args); }
function Int32Array_(...args) { return NewTypedArray(5, new.target, args); }
function Uint32Array_(...args) { return NewTypedArray(6, new.target, args); }
function BigInt64Array_(...args) { return NewTypedArray(7, new.target, args); }
function BigUint64Array_(...args) { return NewTypedArray(8, new.target, args); }
function Float16Array_(...args) { return NewTypedArray(9, new.target, args); }
function Float32Array_(...args) { return NewTypedArray(10, new.target, args); }
function Float64Array_(...args) { return NewTypedArray(11, new.target, args); }

// `TypedArrayCreateFromConstructor`
function CreateTyped(C, args) {
  const made = $construct(C, C, args);
  const count = CountOf(made);
  if (args.length === 1 && typeof args[0] === "number" && count < args[0]) $typeError("The constructor returned a too small typed array");
  return made;
}

// `TypedArraySpeciesCreate`
function SpeciesTyped(exemplar, args) {
  const made = CreateTyped(SpeciesConstructor(exemplar, $elementCtor($elementType(exemplar))), args);
  if ($isBigArray(made) !== $isBigArray(exemplar)) $typeError("Content type of the species constructor's typed array is different");
  return made;
}

function SameType(exemplar, count) {
  const type = $elementType(exemplar);
  return FromProto(type, $elementProto(type), count);
}

// Copies between typed arrays with the same kind of content; ranges over the same bytes are copied as if at once.
function CopyElements(to, at, from, start, count) {
  if ($viewBuffer(to) === $viewBuffer(from)) {
    $elementsCopy(to, at, from, start, count);
    return;
  }
  for (let i = 0; i < count;) {
    const end = Piece(i, count);
    $elementsCopy(to, at + i, from, start + i, end - i);
    i = end;
  }
}

// The value of an element as the array's type takes it: a number or a bigint.
function ElementOf(array, value) { return $isBigArray(array) ? $toBigInt(value) : $toNumber(value); }

// The index of an equal element, -1 if there is none; `zero`: NaN equals itself.
function FindElement(array, value, from, to, zero) {
  while (from < to) {
    const end = Piece(from, to);
    const found = $elementFind(array, value, from, end, zero);
    if (found >= 0) return found;
    from = end;
  }
  return -1;
}

// Sorts without a comparator: runs of one piece, which are then merged in pieces.
function SortElements(array, count) {
  for (let at = 0; at < count;) {
    const end = Piece(at, count);
    $elementsSort(array, at, end);
    at = end;
  }
  if (count <= 16384) return;
  let from = array;
  let to = SameType(array, count);
  for (let width = 16384; width < count; width *= 2) {
    for (let start = 0; start < count; start += 2 * width) {
      const middle = start + width < count ? start + width : count;
      const end = middle + width < count ? middle + width : count;
      let left = start;
      let right = middle;
      while (left < middle || right < end) {
        const next = $elementsMerge(from, to, left, middle, right, end);
        if (next < left) return;
        right = right + (Piece(0, middle - left + end - right) - (next - left));
        left = next;
      }
    }
    const other = from;
    from = to;
    to = other;
  }
  if (from !== array) CopyElements(array, 0, from, 0, count);
}

function SortedList(array, count, compare) {
  const list = [];
  for (let i = 0; i < count; i++) $push(list, array[i]);
  return MergeSort(list, compare);
}

function NeedComparator(compare) {
  if (compare !== undefined && !$isCallable(compare)) $typeError("The comparison function must be either a function or undefined");
}

// [value, index] of the first or last element that fits, [undefined, -1] otherwise.
function FindTyped(array, backwards, predicate, thisArg) {
  const count = CountOf(array);
  NeedFunction(predicate);
  for (let i = 0; i < count; i++) {
    const k = backwards ? count - 1 - i : i;
    const value = array[k];
    if ($call(predicate, thisArg, value, k, array)) return [value, k];
  }
  return [undefined, -1];
}

function JoinElements(array, count, separator) {
  let text = "";
  const now = $elementCount(array);
  const present = now < count ? (now < 0 ? 0 : now) : count;
  for (let at = 0; at < present;) {
    const end = Piece(at, present);
    text += (at > 0 ? separator : "") + $elementsText(array, at, end, separator);
    at = end;
  }
  for (let i = present > 1 ? present : 1; i < count; i++) text += separator;
  return text;
}

const TypedArrayPrototype = {
  get buffer() {
    if ($elementCount(this) === undefined) CountOf(this);
    return $viewBuffer(this);
  },
  get byteLength() {
    const count = $elementCount(this);
    if (count === undefined) CountOf(this);
    return count < 0 ? 0 : count * $elementSize($elementType(this));
  },
  get byteOffset() {
    const count = $elementCount(this);
    if (count === undefined) CountOf(this);
    return count < 0 ? 0 : $viewOffset(this);
  },
  get length() {
    const count = $elementCount(this);
    if (count === undefined) CountOf(this);
    return count < 0 ? 0 : count;
  },
  get [$$SYM_TO_STRING_TAG]() {
    const type = $elementType(this);
    return type === undefined ? undefined : $elementName(type);
  },
  at(index) {
    const count = CountOf(this);
    const k = Wrapped(index, count);
    return k < 0 || k >= count ? undefined : this[k];
  },
  copyWithin(target, start, end = undefined) {
    const count = CountOf(this);
    const to = RelativeIndex(target, count, 0);
    const from = RelativeIndex(start, count, 0);
    const final = RelativeIndex(end, count, count);
    let wanted = final - from < count - to ? final - from : count - to;
    if (wanted > 0) {
      const now = CountOf(this);
      if (now - from < wanted) wanted = now - from;
      if (now - to < wanted) wanted = now - to;
      if (wanted > 0) $elementsCopy(this, to, this, from, wanted);
    }
    return this;
  },
  entries() {
    CountOf(this);
    return NewArrayIterator(this, 2);
  },
  every(callbackfn, thisArg = undefined) {
    const count = CountOf(this);
    NeedFunction(callbackfn);
    for (let k = 0; k < count; k++) if (!$call(callbackfn, thisArg, this[k], k, this)) return false;
    return true;
  },
  fill(value, start = undefined, end = undefined) {
    const count = CountOf(this);
    const element = ElementOf(this, value);
    const first = RelativeIndex(start, count, 0);
    let final = RelativeIndex(end, count, count);
    const now = CountOf(this);
    if (now < final) final = now;
    for (let at = first; at < final;) {
      const to = Piece(at, final);
      $elementsFill(this, element, at, to);
      at = to;
    }
    return this;
  },
  filter(callbackfn, thisArg = undefined) {
    const count = CountOf(this);
    NeedFunction(callbackfn);
    const kept = [];
    for (let k = 0; k < count; k++) {
      const value = this[k];
      if ($call(callbackfn, thisArg, value, k, this)) $push(kept, value);
    }
    const made = SpeciesTyped(this, [kept.length]);
    for (let i = 0; i < kept.length; i++) made[i] = kept[i];
    return made;
  },
  find(predicate, thisArg = undefined) { return FindTyped(this, false, predicate, thisArg)[0]; },
  findIndex(predicate, thisArg = undefined) { return FindTyped(this, false, predicate, thisArg)[1]; },
  findLast(predicate, thisArg = undefined) { return FindTyped(this, true, predicate, thisArg)[0]; },
  findLastIndex(predicate, thisArg = undefined) { return FindTyped(this, true, predicate, thisArg)[1]; },
  forEach(callbackfn, thisArg = undefined) {
    const count = CountOf(this);
    NeedFunction(callbackfn);
    for (let k = 0; k < count; k++) $call(callbackfn, thisArg, this[k], k, this);
  },
  includes(searchElement, fromIndex = undefined) {
    const count = CountOf(this);
    if (count === 0) return false;
    const from = RelativeIndex(fromIndex, count, 0);
    const now = $elementCount(this);
    if (searchElement === undefined && now < count && from < count) return true;
    return FindElement(this, searchElement, from, now < count ? now : count, true) >= 0;
  },
  indexOf(searchElement, fromIndex = undefined) {
    const count = CountOf(this);
    if (count === 0) return -1;
    const from = RelativeIndex(fromIndex, count, 0);
    const now = $elementCount(this);
    return FindElement(this, searchElement, from, now < count ? now : count, false);
  },
  join(separator) {
    const count = CountOf(this);
    return JoinElements(this, count, separator === undefined ? "," : $toString(separator));
  },
  keys() {
    CountOf(this);
    return NewArrayIterator(this, 0);
  },
  lastIndexOf(searchElement) {
    const count = CountOf(this);
    if (count === 0) return -1;
    const n = arguments.length > 1 ? $toInteger(arguments[1]) : count - 1;
    let to = n < 0 ? count + n + 1 : n < count ? n + 1 : count;
    const now = $elementCount(this);
    if (now < to) to = now;
    while (to > 0) {
      const from = to > 16384 ? to - 16384 : 0;
      const found = $elementFindLast(this, searchElement, from, to);
      if (found >= 0) return found;
      to = from;
    }
    return -1;
  },
  map(callbackfn, thisArg = undefined) {
    const count = CountOf(this);
    NeedFunction(callbackfn);
    const made = SpeciesTyped(this, [count]);
    for (let k = 0; k < count; k++) made[k] = $call(callbackfn, thisArg, this[k], k, this);
    return made;
  },
  reduce(callbackfn) {
    const count = CountOf(this);
    NeedFunction(callbackfn);
    let k = 0;
    let accumulator = arguments[1];
    if (arguments.length < 2) {
      if (count === 0) $typeError("Reduce of empty array with no initial value");
      accumulator = this[k++];
    }
    for (; k < count; k++) accumulator = $call(callbackfn, undefined, accumulator, this[k], k, this);
    return accumulator;
  },
  reduceRight(callbackfn) {
    const count = CountOf(this);
    NeedFunction(callbackfn);
    let k = count - 1;
    let accumulator = arguments[1];
    if (arguments.length < 2) {
      if (count === 0) $typeError("Reduce of empty array with no initial value");
      accumulator = this[k--];
    }
    for (; k >= 0; k--) accumulator = $call(callbackfn, undefined, accumulator, this[k], k, this);
    return accumulator;
  },
  reverse() {
    const count = CountOf(this);
    $elementsReverse(this, count);
    return this;
  },
  set(source, offset = undefined) {
    if ($elementCount(this) === undefined) CountOf(this);
    const at = $toInteger(offset);
    if (at < 0) $rangeError("offset is out of bounds");
    const count = CountOf(this);
    if ($elementCount(source) !== undefined) {
      const n = CountOf(source);
      if ($isBigArray(source) !== $isBigArray(this)) $typeError("Cannot mix BigInt and other types, use explicit conversions");
      if (n + at > count) $rangeError("offset is out of bounds");
      CopyElements(this, at, source, 0, n);
      return;
    }
    const from = $toObject(source);
    const n = $toLength(from.length);
    if (n + at > count) $rangeError("offset is out of bounds");
    for (let i = 0; i < n; i++) $putElement(this, at + i, from[i]);
  },
  slice(start, end) {
    const count = CountOf(this);
    const first = RelativeIndex(start, count, 0);
    let final = RelativeIndex(end, count, count);
    const size = final > first ? final - first : 0;
    const made = SpeciesTyped(this, [size]);
    if (size > 0) {
      const now = CountOf(this);
      if (now < final) final = now;
      if ($elementType(made) === $elementType(this)) {
        const space = $elementCount(made);
        const n = final - first < space ? final - first : space;
        if (n > 0) $elementsMove(made, this, first, n);
      } else {
        for (let k = first; k < final; k++) made[k - first] = this[k];
      }
    }
    return made;
  },
  some(callbackfn, thisArg = undefined) {
    const count = CountOf(this);
    NeedFunction(callbackfn);
    for (let k = 0; k < count; k++) if ($call(callbackfn, thisArg, this[k], k, this)) return true;
    return false;
  },
  sort(comparefn) {
    NeedComparator(comparefn);
    const count = CountOf(this);
    if (comparefn === undefined) {
      SortElements(this, count);
      return this;
    }
    const list = SortedList(this, count, comparefn);
    for (let i = 0; i < count; i++) this[i] = list[i];
    return this;
  },
  subarray(start, end) {
    if ($elementCount(this) === undefined) CountOf(this);
    const buffer = $viewBuffer(this);
    const before = $elementCount(this);
    const count = before < 0 ? 0 : before;
    const first = RelativeIndex(start, count, 0);
    const offset = $viewOffset(this) + first * $elementSize($elementType(this));
    if (end === undefined && $viewTracks(this)) return SpeciesTyped(this, [buffer, offset]);
    const final = RelativeIndex(end, count, count);
    return SpeciesTyped(this, [buffer, offset, final > first ? final - first : 0]);
  },
  toLocaleString() {
    const count = CountOf(this);
    let text = "";
    for (let k = 0; k < count; k++) {
      if (k > 0) text += ",";
      const element = this[k];
      if (element !== undefined && element !== null) text += $toString(element.toLocaleString(arguments[0], arguments[1]));
    }
    return text;
  },
  toReversed() {
    const count = CountOf(this);
    const made = SameType(this, count);
    CopyElements(made, 0, this, 0, count);
    $elementsReverse(made, count);
    return made;
  },
  toSorted(comparefn) {
    NeedComparator(comparefn);
    const count = CountOf(this);
    const made = SameType(this, count);
    if (comparefn === undefined) {
      CopyElements(made, 0, this, 0, count);
      SortElements(made, count);
      return made;
    }
    const list = SortedList(this, count, comparefn);
    for (let i = 0; i < count; i++) made[i] = list[i];
    return made;
  },
  values() {
    CountOf(this);
    return NewArrayIterator(this, 1);
  },
  with(index, value) {
    const count = CountOf(this);
    const k = Wrapped(index, count);
    const element = ElementOf(this, value);
    const now = $elementCount(this);
    if (k < 0 || k >= now) $rangeError("Invalid typed array index");
    const made = SameType(this, count);
    CopyElements(made, 0, this, 0, now < count ? now : count);
    for (let i = now; i < count; i++) made[i] = undefined;
    made[k] = element;
    return made;
  },
};

const TypedArrayStatics = {
  from(source, mapfn = undefined, thisArg = undefined) {
    if (!$isConstructor(this)) $typeError($shown(this) + " is not a constructor");
    if (mapfn !== undefined) NeedFunction(mapfn);
    const method = source[$$SYM_ITERATOR];
    const items = method !== undefined && method !== null ? ListByMethod(source, method) : $toObject(source);
    const count = method !== undefined && method !== null ? items.length : $toLength(items.length);
    const made = CreateTyped(this, [count]);
    for (let k = 0; k < count; k++) made[k] = mapfn === undefined ? items[k] : $call(mapfn, thisArg, items[k], k);
    return made;
  },
  of(...items) {
    if (!$isConstructor(this)) $typeError($shown(this) + " is not a constructor");
    const made = CreateTyped(this, [items.length]);
    for (let k = 0; k < items.length; k++) made[k] = items[k];
    return made;
  },
  get [$$SYM_SPECIES]() { return this; },
};
