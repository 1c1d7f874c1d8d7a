// `Iterator`: chunks, windows, join, includes, and reading several iterators together.

function NeedCount(iterator, count) {
  if (typeof count !== "number" || $toInteger(count) !== count || count - count !== 0) {
    IteratorCloseSilently(iterator, undefined);
    $typeError($shown(count) + " is not an integral number");
  }
  if (count < 1 || count > 4294967295) {
    IteratorCloseSilently(iterator, undefined);
    $rangeError($shown(count) + " must be between 1 and 4294967295");
  }
}

function* ChunksHelper(iterator, next, size) {
  let buffer = [];
  for (;;) {
    const step = StepValue(iterator, next);
    if (step === undefined) {
      if (buffer.length > 0) yield buffer;
      return;
    }
    $push(buffer, step[0]);
    if (buffer.length < size) continue;
    const full = buffer;
    buffer = [];
    let returned = true;
    try { yield full; returned = false; } finally { if (returned) IteratorClose(iterator, undefined); }
  }
}

function* WindowsHelper(iterator, next, size, partial) {
  const buffer = [];
  for (;;) {
    const step = StepValue(iterator, next);
    if (step === undefined) {
      if (partial && buffer.length > 0 && buffer.length < size) yield buffer;
      return;
    }
    if (buffer.length === size) $shift(buffer);
    $push(buffer, step[0]);
    if (buffer.length < size) continue;
    const copy = [];
    for (let i = 0; i < size; i++) $push(copy, buffer[i]);
    let returned = true;
    try { yield copy; returned = false; } finally { if (returned) IteratorClose(iterator, undefined); }
  }
}

const IteratorMoreMethods = {
  chunks(chunkSize) {
    NeedIterator(this, "chunks");
    NeedCount(this, chunkSize);
    return NewHelper(ChunksHelper(this, this.next, chunkSize), [this]);
  },
  windows(windowSize, undersized = undefined) {
    NeedIterator(this, "windows");
    NeedCount(this, windowSize);
    if (undersized !== undefined && undersized !== "only-full" && undersized !== "allow-partial") {
      IteratorCloseSilently(this, undefined);
      $typeError("undersized must be 'only-full' or 'allow-partial'");
    }
    return NewHelper(WindowsHelper(this, this.next, windowSize, undersized === "allow-partial"), [this]);
  },
  includes(searchElement, skippedElements = undefined) {
    NeedIterator(this, "includes");
    let left = 0;
    if (skippedElements !== undefined) {
      if (typeof skippedElements !== "number" || $toInteger(skippedElements) !== skippedElements) {
        IteratorCloseSilently(this, undefined);
        $typeError($shown(skippedElements) + " is not an integral number");
      }
      left = skippedElements;
      if (left < 0 || (left > 9007199254740991 && left - left === 0)) {
        IteratorCloseSilently(this, undefined);
        $rangeError($shown(skippedElements) + " is out of range");
      }
    }
    const next = this.next;
    for (;;) {
      const step = StepValue(this, next);
      if (step === undefined) return false;
      if (left > 0) {
        left--;
        continue;
      }
      if ($sameValueZero(step[0], searchElement)) {
        IteratorClose(this, undefined);
        return true;
      }
    }
  },
  join(separator) {
    NeedIterator(this, "join");
    let between = ",";
    if (separator !== undefined) {
      try {
        between = $toString(separator);
      } catch (error) {
        IteratorCloseSilently(this, undefined);
        throw error;
      }
    }
    const next = this.next;
    let text = "";
    for (let first = true; ; first = false) {
      const step = StepValue(this, next);
      if (step === undefined) return text;
      if (!first) text += between;
      if (step[0] === undefined || step[0] === null) continue;
      try {
        text += $toString(step[0]);
      } catch (error) {
        IteratorCloseSilently(this, undefined);
        throw error;
      }
    }
  },
};

// Closes open iterators ([iterator, next], or undefined where closed already), the last one first. The first exception wins.
function CloseAll(open, failed, error) {
  for (let i = open.length - 1; i >= 0; i--) {
    if (open[i] === undefined) continue;
    if (failed) IteratorCloseSilently(open[i][0], undefined);
    else {
      try {
        IteratorClose(open[i][0], undefined);
      } catch (e) {
        failed = true;
        error = e;
      }
    }
  }
  if (failed) throw error;
}

// mode and padding option of `zip` and `zipKeyed`
function ZipOptions(options) {
  if (options === undefined) return ["shortest", undefined];
  if (!$isObject(options)) $typeError("options must be an object");
  let mode = options.mode;
  if (mode === undefined) mode = "shortest";
  if (mode !== "shortest" && mode !== "longest" && mode !== "strict") $typeError("Invalid mode: " + $shown(mode));
  let padding;
  if (mode === "longest") {
    padding = options.padding;
    if (padding !== undefined && !$isObject(padding)) $typeError("padding must be an object");
  }
  return [mode, padding];
}

function ZipPadding(option, iters) {
  const padding = [];
  if (option === undefined) {
    for (let i = 0; i < iters.length; i++) $push(padding, undefined);
    return padding;
  }
  try {
    const source = OpenIterator(option, option[$$SYM_ITERATOR]);
    let using = true;
    for (let i = 0; i < iters.length; i++) {
      let step;
      if (using) {
        step = StepValue(source[0], source[1]);
        if (step === undefined) using = false;
      }
      $push(padding, step === undefined ? undefined : step[0]);
    }
    if (using) IteratorClose(source[0], undefined);
  } catch (error) {
    CloseAll(iters, true, error);
  }
  return padding;
}

function* ZipHelper(iters, mode, padding, keys) {
  const count = iters.length;
  if (count === 0) return;
  const open = [];
  for (let i = 0; i < count; i++) $push(open, iters[i]);
  let left = count;
  for (;;) {
    const results = [];
    for (let i = 0; i < count; i++) {
      const iter = open[i];
      if (iter === undefined) {
        $push(results, padding[i]);
        continue;
      }
      let step;
      try {
        step = StepValue(iter[0], iter[1]);
      } catch (error) {
        open[i] = undefined;
        CloseAll(open, true, error);
      }
      if (step !== undefined) {
        $push(results, step[0]);
        continue;
      }
      open[i] = undefined;
      left--;
      if (mode === "shortest") {
        CloseAll(open, false, undefined);
        return;
      }
      if (mode === "strict") {
        ZipStrictEnd(open, i);
        return;
      }
      if (left === 0) return;
      $push(results, padding[i]);
    }
    let value = results;
    if (keys !== undefined) {
      value = $create(null);
      for (let i = 0; i < count; i++) $createData(value, keys[i], results[i]);
    }
    let returned = true;
    try { yield value; returned = false; } finally { if (returned) CloseAll(open, false, undefined); }
  }
}

// In strict mode all must end in the same step as the first.
function ZipStrictEnd(open, ended) {
  if (ended !== 0) CloseAll(open, true, $makeTypeError("Iterators have different lengths"));
  for (let k = 1; k < open.length; k++) {
    let done;
    try {
      const result = $call(open[k][1], open[k][0]);
      if (!$isObject(result)) $typeError("Iterator result " + $shown(result) + " is not an object");
      done = result.done ? true : false;
    } catch (error) {
      open[k] = undefined;
      CloseAll(open, true, error);
    }
    if (!done) CloseAll(open, true, $makeTypeError("Iterators have different lengths"));
    open[k] = undefined;
  }
}

function ZipIterators(iters, mode, padding, keys) {
  const list = [];
  for (let i = 0; i < iters.length; i++) $push(list, iters[i][0]);
  return NewHelper(ZipHelper(iters, mode, padding, keys), list);
}

const IteratorMoreStatics = {
  zip(iterables, options = undefined) {
    if (!$isObject(iterables)) $typeError($shown(iterables) + " is not an object");
    const chosen = ZipOptions(options);
    const iters = [];
    const input = OpenIterator(iterables, iterables[$$SYM_ITERATOR]);
    for (;;) {
      let step;
      try {
        step = StepValue(input[0], input[1]);
      } catch (error) {
        CloseAll(iters, true, error);
      }
      if (step === undefined) break;
      try {
        $push(iters, Flattenable(step[0], false));
      } catch (error) {
        const all = [input];
        for (let i = 0; i < iters.length; i++) $push(all, iters[i]);
        CloseAll(all, true, error);
      }
    }
    const padding = chosen[0] === "longest" ? ZipPadding(chosen[1], iters) : undefined;
    return ZipIterators(iters, chosen[0], padding, undefined);
  },
  zipKeyed(iterables, options = undefined) {
    if (!$isObject(iterables)) $typeError($shown(iterables) + " is not an object");
    const chosen = ZipOptions(options);
    const all = OwnKeys(iterables);
    const iters = [];
    const keys = [];
    const padding = [];
    try {
      for (let i = 0; i < all.length; i++) {
        if (!IsEnumerable(iterables, all[i])) continue;
        const value = iterables[all[i]];
        if (value === undefined) continue;
        $push(iters, Flattenable(value, false));
        $push(keys, all[i]);
      }
      for (let i = 0; i < keys.length; i++) {
        $push(padding, chosen[0] === "longest" && chosen[1] !== undefined ? chosen[1][keys[i]] : undefined);
      }
    } catch (error) {
      CloseAll(iters, true, error);
    }
    return ZipIterators(iters, chosen[0], padding, keys);
  },
};
