// `Iterator`: the constructor, helpers and consumers. ECMA-262 27.1.3 and 27.1.4.
// A helper is a record (tag 903) around a generator of the prelude and the iterator it reads from.

function Iterator_() {
  if (new.target === undefined || new.target === $$ITERATOR) $typeError("Iterator is an abstract class");
  return $create(ProtoFor(new.target, $$ITERATOR_PROTO));
}

function NeedIterator(value, method) {
  if (!$isObject(value)) $typeError("Iterator.prototype." + method + " called on non-object");
}

// The next value in a fresh array, or undefined at the end.
function StepValue(iterator, next) {
  const result = $call(next, iterator);
  if (!$isObject(result)) $typeError("Iterator result " + $shown(result) + " is not an object");
  return result.done ? undefined : [result.value];
}

// Arguments are checked before the iterator is read; it is closed if they do not fit.
function NeedCallback(iterator, callback) {
  if ($isCallable(callback)) return;
  IteratorCloseSilently(iterator, undefined);
  $typeError($shown(callback) + " is not a function");
}

function NeedLimit(iterator, limit) {
  let n;
  try {
    n = $toNumber(limit);
  } catch (error) {
    IteratorCloseSilently(iterator, undefined);
    throw error;
  }
  const whole = $toInteger(n);
  if (n !== n || whole < 0 || (whole > 9007199254740991 && whole - whole === 0)) {
    IteratorCloseSilently(iterator, undefined);
    $rangeError($shown(limit) + " must be positive");
  }
  return whole;
}

// Calls back; an exception closes the iterator.
function Callback(iterator, callback, value, counter) {
  try {
    return $call(callback, undefined, value, counter);
  } catch (error) {
    IteratorCloseSilently(iterator, undefined);
    throw error;
  }
}

function NewHelper(generator, iterators) { return $record(903, $$ITERATOR_HELPER_PROTO, generator, iterators); }

function* MapHelper(iterator, next, mapper) {
  for (let counter = 0; ; counter++) {
    const step = StepValue(iterator, next);
    if (step === undefined) return;
    const mapped = Callback(iterator, mapper, step[0], counter);
    let returned = true;
    try { yield mapped; returned = false; } finally { if (returned) IteratorClose(iterator, undefined); }
  }
}

function* FilterHelper(iterator, next, predicate) {
  for (let counter = 0; ; counter++) {
    const step = StepValue(iterator, next);
    if (step === undefined) return;
    if (!Callback(iterator, predicate, step[0], counter)) continue;
    let returned = true;
    try { yield step[0]; returned = false; } finally { if (returned) IteratorClose(iterator, undefined); }
  }
}

function* TakeHelper(iterator, next, limit) {
  for (let left = limit; ; left--) {
    if (left === 0) {
      IteratorClose(iterator, undefined);
      return;
    }
    const step = StepValue(iterator, next);
    if (step === undefined) return;
    let returned = true;
    try { yield step[0]; returned = false; } finally { if (returned) IteratorClose(iterator, undefined); }
  }
}

function* DropHelper(iterator, next, limit) {
  for (let left = limit; left > 0; left--) {
    const result = $call(next, iterator);
    if (!$isObject(result)) $typeError("Iterator result " + $shown(result) + " is not an object");
    if (result.done) return;
  }
  for (;;) {
    const step = StepValue(iterator, next);
    if (step === undefined) return;
    let returned = true;
    try { yield step[0]; returned = false; } finally { if (returned) IteratorClose(iterator, undefined); }
  }
}

// [iterator, next] of what a mapper of `flatMap` gave, or of the argument of `Iterator.from`.
function Flattenable(value, strings) {
  if (!$isObject(value) && !(strings && typeof value === "string")) $typeError($shown(value) + " is not an object");
  const method = value[$$SYM_ITERATOR];
  if (method === undefined || method === null) return [value, value.next];
  if (!$isCallable(method)) $typeError($shown(value) + " is not iterable");
  const iterator = $call(method, value);
  if (!$isObject(iterator)) $typeError("Result of the Symbol.iterator method is not an object");
  return [iterator, iterator.next];
}

function* FlatMapHelper(iterator, next, mapper) {
  for (let counter = 0; ; counter++) {
    const step = StepValue(iterator, next);
    if (step === undefined) return;
    let inner;
    try {
      inner = Flattenable($call(mapper, undefined, step[0], counter), false);
    } catch (error) {
      IteratorCloseSilently(iterator, undefined);
      throw error;
    }
    for (;;) {
      let value;
      try {
        value = StepValue(inner[0], inner[1]);
      } catch (error) {
        IteratorCloseSilently(iterator, undefined);
        throw error;
      }
      if (value === undefined) break;
      let returned = true;
      try { yield value[0]; returned = false; } finally { if (returned) CloseBoth(inner[0], iterator); }
    }
  }
}

function CloseBoth(inner, outer) {
  try {
    IteratorClose(inner, undefined);
  } catch (error) {
    IteratorCloseSilently(outer, undefined);
    throw error;
  }
  IteratorClose(outer, undefined);
}

function* ConcatHelper(items) {
  for (let i = 0; i < items.length; i++) {
    const iterator = $call(items[i][1], items[i][0]);
    if (!$isObject(iterator)) $typeError("Result of the Symbol.iterator method is not an object");
    const next = iterator.next;
    for (;;) {
      const step = StepValue(iterator, next);
      if (step === undefined) break;
      let returned = true;
      try { yield step[0]; returned = false; } finally { if (returned) IteratorClose(iterator, undefined); }
    }
  }
}

const IteratorHelperMethods = {
  next() {
    if ($recordTag(this) !== 903) $typeError("next called on something that is not an Iterator Helper");
    const generator = $generatorFor($recordGet(this, 0), "next");
    return $isDone(generator) ? $iterResult(undefined, true) : $resume(generator, 0, undefined);
  },
  return() {
    if ($recordTag(this) !== 903) $typeError("return called on something that is not an Iterator Helper");
    const generator = $generatorFor($recordGet(this, 0), "return");
    if ($isDone(generator)) return $iterResult(undefined, true);
    if ($isStart(generator)) {
      $finishCoroutine(generator);
      const iterators = $recordGet(this, 1);
      const open = [];
      for (let i = 0; i < iterators.length; i++) $push(open, [iterators[i], undefined]);
      CloseAll(open, false, undefined);
      return $iterResult(undefined, true);
    }
    return $resume(generator, 2, undefined);
  },
};

const WrapIteratorMethods = {
  next() {
    if ($recordTag(this) !== 904) $typeError("next called on something that is not a wrapped iterator");
    return $call($recordGet(this, 1), $recordGet(this, 0));
  },
  return() {
    if ($recordTag(this) !== 904) $typeError("return called on something that is not a wrapped iterator");
    const iterator = $recordGet(this, 0);
    const method = iterator.return;
    if (method === undefined || method === null) return $iterResult(undefined, true);
    return $call(method, iterator);
  },
};

const IteratorStatics = {
  from(value) {
    const open = Flattenable(value, true);
    if (OrdinaryHasInstance($$ITERATOR, open[0])) return open[0];
    return $record(904, $$WRAP_ITERATOR_PROTO, open[0], open[1]);
  },
  concat(...items) {
    const open = [];
    for (let i = 0; i < items.length; i++) {
      if (!$isObject(items[i])) $typeError($shown(items[i]) + " is not an object");
      const method = items[i][$$SYM_ITERATOR];
      if (method === undefined || method === null || !$isCallable(method)) $typeError($shown(items[i]) + " is not iterable");
      $push(open, [items[i], method]);
    }
    return NewHelper(ConcatHelper(open), []);
  },
};

// ECMA-262 7.3.36 SetterThatIgnoresPrototypeProperties
function SetIgnoringPrototype(target, home, key, value) {
  if (!$isObject(target)) $typeError("Cannot assign to a property of a non-object");
  if (target === home) $typeError("Cannot assign to a property of a builtin prototype");
  if (HasOwn(target, key)) target[key] = value;
  else CreateDataOrThrow(target, key, value);
}

const IteratorMethods = {
  get [$$SYM_TO_STRING_TAG]() { return "Iterator"; },
  set [$$SYM_TO_STRING_TAG](value) { SetIgnoringPrototype(this, $$ITERATOR_PROTO, $$SYM_TO_STRING_TAG, value); },
  get constructor() { return $$ITERATOR; },
  set constructor(value) { SetIgnoringPrototype(this, $$ITERATOR_PROTO, "constructor", value); },
  map(mapper) {
    NeedIterator(this, "map");
    NeedCallback(this, mapper);
    return NewHelper(MapHelper(this, this.next, mapper), [this]);
  },
  filter(predicate) {
    NeedIterator(this, "filter");
    NeedCallback(this, predicate);
    return NewHelper(FilterHelper(this, this.next, predicate), [this]);
  },
  take(limit) {
    NeedIterator(this, "take");
    const whole = NeedLimit(this, limit);
    return NewHelper(TakeHelper(this, this.next, whole), [this]);
  },
  drop(limit) {
    NeedIterator(this, "drop");
    const whole = NeedLimit(this, limit);
    return NewHelper(DropHelper(this, this.next, whole), [this]);
  },
  flatMap(mapper) {
    NeedIterator(this, "flatMap");
    NeedCallback(this, mapper);
    return NewHelper(FlatMapHelper(this, this.next, mapper), [this]);
  },
  reduce(reducer) {
    NeedIterator(this, "reduce");
    NeedCallback(this, reducer);
    const next = this.next;
    let counter = 0;
    let accumulator;
    if (arguments.length > 1) accumulator = arguments[1];
    else {
      const first = StepValue(this, next);
      if (first === undefined) $typeError("Reduce of an empty iterator with no initial value");
      accumulator = first[0];
      counter = 1;
    }
    for (;; counter++) {
      const step = StepValue(this, next);
      if (step === undefined) return accumulator;
      try {
        accumulator = $call(reducer, undefined, accumulator, step[0], counter);
      } catch (error) {
        IteratorCloseSilently(this, undefined);
        throw error;
      }
    }
  },
  toArray() {
    NeedIterator(this, "toArray");
    const next = this.next;
    const items = [];
    for (;;) {
      const step = StepValue(this, next);
      if (step === undefined) return items;
      $push(items, step[0]);
    }
  },
  forEach(procedure) {
    NeedIterator(this, "forEach");
    NeedCallback(this, procedure);
    const next = this.next;
    for (let counter = 0; ; counter++) {
      const step = StepValue(this, next);
      if (step === undefined) return undefined;
      Callback(this, procedure, step[0], counter);
    }
  },
  some(predicate) {
    NeedIterator(this, "some");
    NeedCallback(this, predicate);
    const next = this.next;
    for (let counter = 0; ; counter++) {
      const step = StepValue(this, next);
      if (step === undefined) return false;
      if (Callback(this, predicate, step[0], counter)) {
        IteratorClose(this, undefined);
        return true;
      }
    }
  },
  every(predicate) {
    NeedIterator(this, "every");
    NeedCallback(this, predicate);
    const next = this.next;
    for (let counter = 0; ; counter++) {
      const step = StepValue(this, next);
      if (step === undefined) return true;
      if (!Callback(this, predicate, step[0], counter)) {
        IteratorClose(this, undefined);
        return false;
      }
    }
  },
  find(predicate) {
    NeedIterator(this, "find");
    NeedCallback(this, predicate);
    const next = this.next;
    for (let counter = 0; ; counter++) {
      const step = StepValue(this, next);
      if (step === undefined) return undefined;
      if (Callback(this, predicate, step[0], counter)) {
        IteratorClose(this, undefined);
        return step[0];
      }
    }
  },
};
