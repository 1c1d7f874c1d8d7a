// Array: the constructor, and the methods that call functions or read elements one by one.

function Array_() {
  const proto = new.target === undefined ? $$ARRAY_PROTO : ProtoFor(new.target, $$ARRAY_PROTO);
  const a = $arrayNew(proto);
  if (arguments.length === 1) {
    const len = arguments[0];
    if (typeof len !== "number") { $push(a, len); return a; }
    if ($toUint32(len) !== len) $rangeError("Invalid array length");
    $arraySetLength(a, len);
    return a;
  }
  for (let i = 0; i < arguments.length; i++) $push(a, arguments[i]);
  return a;
}

function ArraySpeciesCreate(original, length) {
  if (!$isArray(original)) return ArrayCreate(length);
  let C = original.constructor;
  if ($isObject(C)) {
    C = C[$$SYM_SPECIES];
    if (C === null) C = undefined;
  }
  if (C === undefined) return ArrayCreate(length);
  if (!$isConstructor(C)) $typeError("object.constructor[Symbol.species] is not a constructor");
  return new C(length);
}

function ArrayCreate(length) {
  if (length > 4294967295) $rangeError("Invalid array length");
  const a = $arrayNew($$ARRAY_PROTO);
  if (length > 0) $arraySetLength(a, length);
  return a;
}

function NeedFunction(f) { if (!$isCallable(f)) $typeError($shown(f) + " is not a function"); }

// A relative index as `slice` and others take it.
function RelativeIndex(value, length, missing) {
  if (value === undefined) return missing;
  const n = $toInteger(value);
  if (n < 0) return n + length < 0 ? 0 : n + length;
  return n > length ? length : n;
}

// Merge sort, stable; `compare` undefined means by text.
function SortList(list, compare) {
  const n = list.length;
  if (compare === undefined) {
    if ($sortPlain(list)) return list;
    for (let i = 0; i < n; i++) list[i] = [list[i], $toString(list[i])];
    const sorted = MergeSort(list, (x, y) => (x[1] < y[1] ? -1 : y[1] < x[1] ? 1 : 0));
    for (let i = 0; i < n; i++) sorted[i] = sorted[i][0];
    return sorted;
  }
  return MergeSort(list, compare);
}

function MergeSort(list, compare) {
  const n = list.length;
  return n < 2 ? list : $mergeSort(compare, list, $listOf(n));
}

function ArrayPushSlow() {
  const O = $toObject(this);
  let len = $toLength(O.length);
  if (len + arguments.length > 9007199254740991) $typeError("Pushing " + arguments.length + " elements is too long");
  for (let i = 0; i < arguments.length; i++) O[len++] = arguments[i];
  O.length = len;
  return len;
}

function ArrayPopSlow() {
  const O = $toObject(this);
  const len = $toLength(O.length);
  if (len === 0) { O.length = 0; return undefined; }
  const element = O[len - 1];
  DeleteOrThrow(O, $toKey(len - 1));
  O.length = len - 1;
  return element;
}

const ArrayPrototype = {
  map(callbackfn, thisArg = undefined) {
    const O = $toObject(this);
    const len = $toLength(O.length);
    NeedFunction(callbackfn);
    const A = ArraySpeciesCreate(O, len);
    for (let k = 0; k < len; k++) {
      if (k in O) CreateDataOrThrow(A, k, $call(callbackfn, thisArg, O[k], k, O));
    }
    return A;
  },
  forEach(callbackfn, thisArg = undefined) {
    const O = $toObject(this);
    const len = $toLength(O.length);
    NeedFunction(callbackfn);
    for (let k = 0; k < len; k++) if (k in O) $call(callbackfn, thisArg, O[k], k, O);
  },
  filter(callbackfn, thisArg = undefined) {
    const O = $toObject(this);
    const len = $toLength(O.length);
    NeedFunction(callbackfn);
    const A = ArraySpeciesCreate(O, 0);
    let to = 0;
    for (let k = 0; k < len; k++) {
      if (k in O) {
        const value = O[k];
        if ($call(callbackfn, thisArg, value, k, O)) CreateDataOrThrow(A, to++, value);
      }
    }
    return A;
  },
  reduce(callbackfn) {
    const O = $toObject(this);
    const len = $toLength(O.length);
    NeedFunction(callbackfn);
    let k = 0, accumulator;
    if (arguments.length > 1) accumulator = arguments[1];
    else {
      while (k < len && !(k in O)) k++;
      if (k >= len) $typeError("Reduce of empty array with no initial value");
      accumulator = O[k++];
    }
    for (; k < len; k++) if (k in O) accumulator = $call(callbackfn, undefined, accumulator, O[k], k, O);
    return accumulator;
  },
  sort(comparefn) {
    if (comparefn !== undefined && !$isCallable(comparefn)) $typeError("The comparison function must be either a function or undefined");
    const O = $toObject(this);
    const len = $toLength(O.length);
    let list = $denseCopy(O);
    let undefineds = 0;
    if (list === undefined) {
      list = [];
      for (let k = 0; k < len; k++) {
        if (k in O) {
          const value = O[k];
          if (value === undefined) undefineds++; else $push(list, value);
        }
      }
    }
    const sorted = SortList(list, comparefn);
    if ($densePut(O, sorted, len)) return O;
    const n = sorted.length;
    let k = 0;
    for (; k < n; k++) O[k] = sorted[k];
    for (let i = 0; i < undefineds; i++) O[k++] = undefined;
    for (; k < len; k++) if (k in O) DeleteOrThrow(O, $toKey(k));
    return O;
  },
  join(separator) {
    const O = $toObject(this);
    const len = $toLength(O.length);
    const sep = separator === undefined ? "," : $toString(separator);
    if ($joinEnter(O)) return "";
    let text = "";
    try {
      for (let k = 0; k < len; k++) {
        if (k > 0) text += sep;
        const element = O[k];
        if (element !== undefined && element !== null) text += $toString(element);
      }
    } finally { $joinLeave(O); }
    return text;
  },
  toString() {
    const array = $toObject(this);
    const join = array.join;
    return $isCallable(join) ? $call(join, array) : $call($$OBJECT_TO_STRING, array);
  },
  keys() { return NewArrayIterator($toObject(this), 0); },
  entries() { return NewArrayIterator($toObject(this), 2); },
  values() { return NewArrayIterator($toObject(this), 1); },
};

const ArrayStatics = {
  isArray(arg) { return $isArray(arg); },
  get [$$SYM_SPECIES]() { return this; },
};
