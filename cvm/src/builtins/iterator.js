// Array iterators and the prototypes of iterators.

// kind: 0 keys, 1 values, 2 entries
function NewArrayIterator(array, kind) { return $record(1, $$ARRAY_ITERATOR_PROTO, array, 0, kind); }

const ArrayIteratorPrototype = {
  next() {
    if ($recordTag(this) !== 1) $typeError("next method called on incompatible receiver " + $shown(this));
    const array = $recordGet(this, 0);
    if (array === undefined) return $iterResult(undefined, true);
    const index = $recordGet(this, 1);
    const kind = $recordGet(this, 2);
    const elements = $elementCount(array);
    if (elements < 0) OutOfBounds();
    const length = elements === undefined ? $toLength(array.length) : elements;
    if (index >= length) {
      $recordSet(this, 0, undefined);
      return $iterResult(undefined, true);
    }
    $recordSet(this, 1, index + 1);
    if (kind === 0) return $iterResult(index, false);
    const value = array[index];
    return $iterResult(kind === 1 ? value : [index, value], false);
  },
};

const IteratorPrototype = {
  [$$SYM_ITERATOR]() { return this; },
};

const AsyncIteratorPrototype = {
  [$$SYM_ASYNC_ITERATOR]() { return this; },
};
