// Array: the methods beside those that `array.js` has. ECMA-262 23.1.2 and 23.1.3.

// An index counted from the end if negative; the result may lie outside.
function Wrapped(index, length) {
  const n = $toInteger(index);
  return n < 0 ? length + n : n;
}

function TooLong(length) {
  if (length > 9007199254740991) $typeError("Array is too long");
}

function IsConcatSpreadable(value) {
  if (!$isObject(value)) return false;
  const spreadable = value[$$SYM_IS_CONCAT_SPREADABLE];
  if (spreadable !== undefined) return spreadable ? true : false;
  return $isArray(value);
}

function FlattenInto(target, source, sourceLength, start, depth, mapper, thisArg) {
  let to = start;
  for (let k = 0; k < sourceLength; k++) {
    if (!(k in source)) continue;
    let element = source[k];
    if (mapper !== undefined) element = $call(mapper, thisArg, element, k, source);
    if (depth > 0 && $isArray(element)) {
      to = FlattenInto(target, element, $toLength(element.length), to, depth - 1, undefined, undefined);
    } else {
      TooLong(to + 1);
      CreateDataOrThrow(target, to, element);
      to++;
    }
  }
  return to;
}

// Moves `count` elements from `from` to `to`, in the direction that does not overwrite what is still to be read.
function MoveElements(O, from, to, count) {
  const step = from < to ? -1 : 1;
  let k = step < 0 ? count - 1 : 0;
  for (let left = count; left > 0; left--) {
    if (from + k in O) O[to + k] = O[from + k];
    else DeleteOrThrow(O, $toKey(to + k));
    k += step;
  }
}

// [value, index] of the first or last element that fits, [undefined, -1] otherwise.
function FindVia(O, length, backwards, predicate, thisArg) {
  NeedFunction(predicate);
  for (let i = 0; i < length; i++) {
    const k = backwards ? length - 1 - i : i;
    const value = O[k];
    if ($call(predicate, thisArg, value, k, O)) return [value, k];
  }
  return [undefined, -1];
}

const ArrayMore = {
  at(index) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const k = Wrapped(index, length);
    return k < 0 || k >= length ? undefined : O[k];
  },
  concat(first) {
    const O = $toObject(this);
    const A = ArraySpeciesCreate(O, 0);
    let n = 0;
    for (let i = -1; i < arguments.length; i++) {
      const item = i < 0 ? O : arguments[i];
      if (IsConcatSpreadable(item)) {
        const length = $toLength(item.length);
        TooLong(n + length);
        if (!$denseAppend(A, n, item, length)) {
          for (let k = 0; k < length; k++) {
            if (k in item) CreateDataOrThrow(A, n + k, item[k]);
          }
        }
        n += length;
      } else {
        TooLong(n + 1);
        CreateDataOrThrow(A, n, item);
        n++;
      }
    }
    A.length = n;
    return A;
  },
  copyWithin(target, start, end = undefined) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const to = RelativeIndex(target, length, 0);
    const from = RelativeIndex(start, length, 0);
    const final = RelativeIndex(end, length, length);
    const wanted = final - from;
    const room = length - to;
    MoveElements(O, from, to, wanted < room ? wanted : room);
    return O;
  },
  every(callbackfn, thisArg = undefined) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    NeedFunction(callbackfn);
    for (let k = 0; k < length; k++) {
      if (k in O && !$call(callbackfn, thisArg, O[k], k, O)) return false;
    }
    return true;
  },
  fill(value, start = undefined, end = undefined) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const final0 = RelativeIndex(start, length, 0);
    const final = RelativeIndex(end, length, length);
    for (let k = final0; k < final; k++) O[k] = value;
    return O;
  },
  find(predicate, thisArg = undefined) {
    const O = $toObject(this);
    return FindVia(O, $toLength(O.length), false, predicate, thisArg)[0];
  },
  findIndex(predicate, thisArg = undefined) {
    const O = $toObject(this);
    return FindVia(O, $toLength(O.length), false, predicate, thisArg)[1];
  },
  findLast(predicate, thisArg = undefined) {
    const O = $toObject(this);
    return FindVia(O, $toLength(O.length), true, predicate, thisArg)[0];
  },
  findLastIndex(predicate, thisArg = undefined) {
    const O = $toObject(this);
    return FindVia(O, $toLength(O.length), true, predicate, thisArg)[1];
  },
  flat(depth = undefined) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const levels = depth === undefined ? 1 : $toInteger(depth);
    const A = ArraySpeciesCreate(O, 0);
    FlattenInto(A, O, length, 0, levels < 0 ? 0 : levels, undefined, undefined);
    return A;
  },
  flatMap(mapperFunction, thisArg = undefined) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    NeedFunction(mapperFunction);
    const A = ArraySpeciesCreate(O, 0);
    FlattenInto(A, O, length, 0, 1, mapperFunction, thisArg);
    return A;
  },
  includes(searchElement, fromIndex = undefined) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    if (length === 0) return false;
    const start = RelativeIndex(fromIndex, length, 0);
    const at = $denseFind(O, searchElement, start, true, length);
    if (at !== undefined) return at >= 0;
    for (let k = start; k < length; k++) {
      if ($sameValueZero(O[k], searchElement)) return true;
    }
    return false;
  },
  indexOf(searchElement, fromIndex = undefined) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    if (length === 0) return -1;
    const start = RelativeIndex(fromIndex, length, 0);
    const at = $denseFind(O, searchElement, start, false, length);
    if (at !== undefined) return at;
    for (let k = start; k < length; k++) {
      if (k in O && O[k] === searchElement) return k;
    }
    return -1;
  },
  lastIndexOf(searchElement) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    if (length === 0) return -1;
    const n = arguments.length > 1 ? $toInteger(arguments[1]) : length - 1;
    for (let k = n < 0 ? length + n : n < length - 1 ? n : length - 1; k >= 0; k--) {
      if (k in O && O[k] === searchElement) return k;
    }
    return -1;
  },
  reduceRight(callbackfn) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    NeedFunction(callbackfn);
    let k = length - 1;
    let accumulator;
    if (arguments.length > 1) accumulator = arguments[1];
    else {
      while (k >= 0 && !(k in O)) k--;
      if (k < 0) $typeError("Reduce of empty array with no initial value");
      accumulator = O[k--];
    }
    for (; k >= 0; k--) if (k in O) accumulator = $call(callbackfn, undefined, accumulator, O[k], k, O);
    return accumulator;
  },
  reverse() {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const middle = (length - length % 2) / 2;
    for (let lower = 0; lower < middle; lower++) {
      const upper = length - lower - 1;
      const lowerHere = lower in O;
      const low = lowerHere ? O[lower] : undefined;
      const upperHere = upper in O;
      const high = upperHere ? O[upper] : undefined;
      if (upperHere) O[lower] = high; else if (lowerHere) DeleteOrThrow(O, $toKey(lower));
      if (lowerHere) O[upper] = low; else if (upperHere) DeleteOrThrow(O, $toKey(upper));
    }
    return O;
  },
  shift() {
    const O = $toObject(this);
    const length = $toLength(O.length);
    if (length === 0) {
      O.length = 0;
      return undefined;
    }
    const first = O[0];
    if ($denseSplice(O, 0, 1, undefined, length)) return first;
    MoveElements(O, 1, 0, length - 1);
    DeleteOrThrow(O, $toKey(length - 1));
    O.length = length - 1;
    return first;
  },
  slice(start, end) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    let k = RelativeIndex(start, length, 0);
    const final = RelativeIndex(end, length, length);
    const A = ArraySpeciesCreate(O, final > k ? final - k : 0);
    let n = 0;
    if (k < final && $denseSlice(A, O, k, final, length)) n = final - k;
    else {
      for (; k < final; k++) {
        if (k in O) CreateDataOrThrow(A, n, O[k]);
        n++;
      }
    }
    A.length = n;
    return A;
  },
  some(callbackfn, thisArg = undefined) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    NeedFunction(callbackfn);
    for (let k = 0; k < length; k++) {
      if (k in O && $call(callbackfn, thisArg, O[k], k, O)) return true;
    }
    return false;
  },
  splice(start, deleteCount, ...items) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const from = RelativeIndex(start, length, 0);
    const count = SpliceCount(arguments.length, deleteCount, length, from);
    TooLong(length + items.length - count);
    const A = ArraySpeciesCreate(O, count);
    if (!$denseSlice(A, O, from, from + count, length)) {
      for (let k = 0; k < count; k++) {
        if (from + k in O) CreateDataOrThrow(A, k, O[from + k]);
      }
    }
    A.length = count;
    if ($denseSplice(O, from, count, items, length)) return A;
    const added = items.length;
    if (added !== count) {
      MoveElements(O, from + count, from + added, length - count - from);
      for (let k = length; k > length - count + added; k--) DeleteOrThrow(O, $toKey(k - 1));
    }
    for (let k = 0; k < added; k++) O[from + k] = items[k];
    O.length = length - count + added;
    return A;
  },
  toLocaleString() {
    const O = $toObject(this);
    const length = $toLength(O.length);
    if ($joinEnter(O)) return "";
    let text = "";
    try {
      for (let k = 0; k < length; k++) {
        if (k > 0) text += ",";
        const element = O[k];
        if (element !== undefined && element !== null) {
          const shown = $call(element.toLocaleString, element, arguments[0], arguments[1]);
          text += $toString(shown);
        }
      }
    } finally { $joinLeave(O); }
    return text;
  },
  toReversed() {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const A = ArrayCreate(length);
    for (let k = 0; k < length; k++) $createData(A, k, O[length - 1 - k]);
    return A;
  },
  toSorted(comparefn) {
    if (comparefn !== undefined && !$isCallable(comparefn)) $typeError("The comparison function must be either a function or undefined");
    const O = $toObject(this);
    const length = $toLength(O.length);
    const A = ArrayCreate(length);
    let list = $denseCopy(O);
    if (list === undefined) {
      list = [];
      for (let k = 0; k < length; k++) {
        const value = O[k];
        if (value !== undefined) $push(list, value);
      }
    }
    const sorted = SortList(list, comparefn);
    for (let k = 0; k < length; k++) $createData(A, k, k < sorted.length ? sorted[k] : undefined);
    return A;
  },
  toSpliced(start, skipCount, ...items) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const from = RelativeIndex(start, length, 0);
    const skip = SpliceCount(arguments.length, skipCount, length, from);
    const newLength = length + items.length - skip;
    TooLong(newLength);
    const A = ArrayCreate(newLength);
    for (let k = 0; k < from; k++) $createData(A, k, O[k]);
    for (let k = 0; k < items.length; k++) $createData(A, from + k, items[k]);
    for (let k = from + items.length; k < newLength; k++) $createData(A, k, O[k - items.length + skip]);
    return A;
  },
  unshift(first) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const count = arguments.length;
    if (count > 0) {
      TooLong(length + count);
      if ($denseSplice(O, 0, 0, arguments, length)) return length + count;
      MoveElements(O, 0, count, length);
      for (let k = 0; k < count; k++) O[k] = arguments[k];
    }
    O.length = length + count;
    return length + count;
  },
  with(index, value) {
    const O = $toObject(this);
    const length = $toLength(O.length);
    const at = Wrapped(index, length);
    if (at < 0 || at >= length) $rangeError("Invalid index : " + $shown(at));
    const A = ArrayCreate(length);
    for (let k = 0; k < length; k++) $createData(A, k, k === at ? value : O[k]);
    return A;
  },
};

// How many elements `splice` takes out: none without arguments, all without a count.
function SpliceCount(given, count, length, from) {
  if (given === 0) return 0;
  if (given === 1) return length - from;
  const n = $toInteger(count);
  return n < 0 ? 0 : n > length - from ? length - from : n;
}

// `new C(…)`, or a plain array if `C` does not construct.
function ArrayOfKind(C, length) {
  if (!$isConstructor(C)) return ArrayCreate(length === undefined ? 0 : length);
  return length === undefined ? new C() : new C(length);
}

const ArrayMoreStatics = {
  from(items, mapper = undefined, thisArg = undefined) {
    const C = this;
    if (mapper !== undefined) NeedFunction(mapper);
    const method = items[$$SYM_ITERATOR];
    if (method !== undefined && method !== null) {
      const A = ArrayOfKind(C, undefined);
      const open = OpenIterator(items, method);
      let k = 0;
      for (;;) {
        const result = $call(open[1], open[0]);
        if (!$isObject(result)) $typeError("Iterator result " + $shown(result) + " is not an object");
        if (result.done) {
          A.length = k;
          return A;
        }
        let value = result.value;
        try {
          if (mapper !== undefined) value = $call(mapper, thisArg, value, k);
          CreateDataOrThrow(A, k, value);
        } catch (error) {
          IteratorCloseSilently(open[0], open[1]);
          throw error;
        }
        k++;
      }
    }
    const like = $toObject(items);
    const length = $toLength(like.length);
    const A = ArrayOfKind(C, length);
    for (let k = 0; k < length; k++) {
      const value = like[k];
      CreateDataOrThrow(A, k, mapper === undefined ? value : $call(mapper, thisArg, value, k));
    }
    A.length = length;
    return A;
  },
  of(...items) {
    const A = ArrayOfKind(this, items.length);
    for (let k = 0; k < items.length; k++) CreateDataOrThrow(A, k, items[k]);
    A.length = items.length;
    return A;
  },
  fromAsync(items, mapper = undefined, thisArg = undefined) {
    return FromAsync(this, items, mapper, thisArg);
  },
};

async function FromAsync(C, items, mapper, thisArg) {
  if (mapper !== undefined) NeedFunction(mapper);
  let method = items[$$SYM_ASYNC_ITERATOR];
  let sync = false;
  if (method === undefined || method === null) {
    method = items[$$SYM_ITERATOR];
    sync = true;
  }
  if (method !== undefined && method !== null) {
    const A = ArrayOfKind(C, undefined);
    const open = OpenIterator(items, method);
    let k = 0;
    for (;;) {
      let result = $call(open[1], open[0]);
      if (!sync) result = await result;
      if (!$isObject(result)) $typeError("Iterator result " + $shown(result) + " is not an object");
      if (result.done) {
        A.length = k;
        return A;
      }
      let value = result.value;
      try {
        if (sync) value = await value;
        if (mapper !== undefined) value = await $call(mapper, thisArg, value, k);
        CreateDataOrThrow(A, k, value);
      } catch (error) {
        await CloseForAsync(open, sync);
        throw error;
      }
      k++;
    }
  }
  const like = $toObject(items);
  const length = $toLength(like.length);
  const A = ArrayOfKind(C, length);
  for (let k = 0; k < length; k++) {
    let value = await like[k];
    if (mapper !== undefined) value = await $call(mapper, thisArg, value, k);
    CreateDataOrThrow(A, k, value);
  }
  A.length = length;
  return A;
}

async function CloseForAsync(open, sync) {
  try {
    const method = open[0].return;
    if (method === undefined || method === null) return;
    const result = $call(method, open[0]);
    if (!sync) await result;
  } catch (error) {}
}
