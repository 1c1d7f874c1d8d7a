// `Map`, `Set`, the weak collections: what calls methods of other objects. ECMA-262 24 and 26.

const SpeciesStatics = {
  get [$$SYM_SPECIES]() { return this; },
};

function Map_(iterable) {
  if (new.target === undefined) $typeError("Constructor Map requires 'new'");
  const map = $mapNew(ProtoFor(new.target, $$MAP_PROTO));
  if (iterable === undefined || iterable === null) return map;
  const adder = map.set;
  if (!$isCallable(adder)) $typeError("'set' of the new Map is not a function");
  for (const item of iterable) {
    if (!$isObject(item)) $typeError("Iterator value " + $shown(item) + " is not an entry object");
    const key = item[0];
    const value = item[1];
    if (adder === $$MAP_SET) $tableSet(map, key, value);
    else $call(adder, map, key, value);
  }
  return map;
}

function Set_(iterable) {
  if (new.target === undefined) $typeError("Constructor Set requires 'new'");
  const set = $setNew(ProtoFor(new.target, $$SET_PROTO));
  if (iterable === undefined || iterable === null) return set;
  const adder = set.add;
  if (!$isCallable(adder)) $typeError("'add' of the new Set is not a function");
  for (const item of iterable) $call(adder, set, item);
  return set;
}

function ThisMap(value, method) {
  if (!$isMap(value)) $typeError("Method Map.prototype." + method + " called on incompatible receiver " + $shown(value));
}

function ThisSet(value, method) {
  if (!$isSet(value)) $typeError("Method Set.prototype." + method + " called on incompatible receiver " + $shown(value));
}

function RequireFunction(value) {
  if (!$isCallable(value)) $typeError($shown(value) + " is not a function");
}

const MapStatics = {
  groupBy(items, callback) {
    if (items === undefined || items === null) $typeError("Map.groupBy called on null or undefined");
    RequireFunction(callback);
    const groups = $mapNew($$MAP_PROTO);
    let k = 0;
    for (const value of items) {
      const key = $call(callback, undefined, value, k);
      const group = $tableGet(groups, key);
      if (group === undefined) $tableSet(groups, key, [value]);
      else $push(group, value);
      k++;
    }
    return groups;
  },
};

const MapMethods = {
  forEach(callback, thisArg = undefined) {
    ThisMap(this, "forEach");
    RequireFunction(callback);
    let at = $tableAfter(this, -1);
    while (at >= 0) {
      $call(callback, thisArg, $tableValue(this, at), $tableKey(this, at), this);
      at = $tableAfter(this, at);
    }
  },
  getOrInsert(key, value) {
    ThisMap(this, "getOrInsert");
    if ($tableHas(this, key)) return $tableGet(this, key);
    $tableSet(this, key, value);
    return value;
  },
  getOrInsertComputed(key, callback) {
    ThisMap(this, "getOrInsertComputed");
    RequireFunction(callback);
    if ($tableHas(this, key)) return $tableGet(this, key);
    const canonical = $sameValueZero(key, 0) ? 0 : key;
    const value = $call(callback, undefined, canonical);
    $tableSet(this, canonical, value);
    return value;
  },
};

// ECMA-262 24.2.1.2: [object, size, has, keys]
function GetSetRecord(o) {
  if (!$isObject(o)) $typeError($shown(o) + " is not a set-like object");
  const size = $toNumber(o.size);
  if (size !== size) $typeError("The size of a set-like object must be a number");
  const whole = $toInteger(size);
  if (whole < 0) $rangeError("The size of a set-like object must not be negative");
  const has = o.has;
  RequireFunction(has);
  const keys = o.keys;
  RequireFunction(keys);
  return [o, whole, has, keys];
}

// The iterator over a set-like object's keys: [iterator, next].
function KeysOf(record) {
  const iterator = $call(record[3], record[0]);
  if (!$isObject(iterator)) $typeError("keys() of a set-like object must return an object");
  return [iterator, iterator.next];
}

// The next key in a fresh array, or undefined at the end.
function NextKey(keys) {
  const result = $call(keys[1], keys[0]);
  if (!$isObject(result)) $typeError("Iterator result " + $shown(result) + " is not an object");
  return result.done ? undefined : [result.value];
}

function CloseKeys(keys) {
  const method = keys[0].return;
  if (method === undefined || method === null) return;
  const result = $call(method, keys[0]);
  if (!$isObject(result)) $typeError("Iterator result is not an object");
}

function CopySet(set) {
  const copy = $setNew($$SET_PROTO);
  let at = $tableAfter(set, -1);
  while (at >= 0) {
    const key = $tableKey(set, at);
    $tableSet(copy, key, key);
    at = $tableAfter(set, at);
  }
  return copy;
}

function AddKey(set, key) {
  const canonical = $sameValueZero(key, 0) ? 0 : key;
  $tableSet(set, canonical, canonical);
}

const SetMethods = {
  forEach(callback, thisArg = undefined) {
    ThisSet(this, "forEach");
    RequireFunction(callback);
    let at = $tableAfter(this, -1);
    while (at >= 0) {
      const key = $tableKey(this, at);
      $call(callback, thisArg, key, key, this);
      at = $tableAfter(this, at);
    }
  },
  union(other) {
    ThisSet(this, "union");
    const record = GetSetRecord(other);
    const keys = KeysOf(record);
    const result = CopySet(this);
    for (let next = NextKey(keys); next !== undefined; next = NextKey(keys)) AddKey(result, next[0]);
    return result;
  },
  intersection(other) {
    ThisSet(this, "intersection");
    const record = GetSetRecord(other);
    const result = $setNew($$SET_PROTO);
    if ($tableSize(this) <= record[1]) {
      let at = $tableAfter(this, -1);
      while (at >= 0) {
        const key = $tableKey(this, at);
        if ($call(record[2], record[0], key)) AddKey(result, key);
        at = $tableAfter(this, at);
      }
      return result;
    }
    const keys = KeysOf(record);
    for (let next = NextKey(keys); next !== undefined; next = NextKey(keys)) {
      if ($tableHas(this, next[0])) AddKey(result, next[0]);
    }
    return result;
  },
  difference(other) {
    ThisSet(this, "difference");
    const record = GetSetRecord(other);
    if ($tableSize(this) <= record[1]) {
      const result = CopySet(this);
      let at = $tableAfter(this, -1);
      while (at >= 0) {
        const key = $tableKey(this, at);
        if ($call(record[2], record[0], key)) $tableDelete(result, key);
        at = $tableAfter(this, at);
      }
      return result;
    }
    const keys = KeysOf(record);
    const result = CopySet(this);
    for (let next = NextKey(keys); next !== undefined; next = NextKey(keys)) $tableDelete(result, next[0]);
    return result;
  },
  symmetricDifference(other) {
    ThisSet(this, "symmetricDifference");
    const record = GetSetRecord(other);
    const keys = KeysOf(record);
    const result = CopySet(this);
    for (let next = NextKey(keys); next !== undefined; next = NextKey(keys)) {
      const key = next[0];
      if ($tableHas(this, key)) $tableDelete(result, key);
      else AddKey(result, key);
    }
    return result;
  },
  isSubsetOf(other) {
    ThisSet(this, "isSubsetOf");
    const record = GetSetRecord(other);
    if ($tableSize(this) > record[1]) return false;
    let at = $tableAfter(this, -1);
    while (at >= 0) {
      if (!$call(record[2], record[0], $tableKey(this, at))) return false;
      at = $tableAfter(this, at);
    }
    return true;
  },
  isSupersetOf(other) {
    ThisSet(this, "isSupersetOf");
    const record = GetSetRecord(other);
    if ($tableSize(this) < record[1]) return false;
    const keys = KeysOf(record);
    for (let next = NextKey(keys); next !== undefined; next = NextKey(keys)) {
      if (!$tableHas(this, next[0])) {
        CloseKeys(keys);
        return false;
      }
    }
    return true;
  },
  isDisjointFrom(other) {
    ThisSet(this, "isDisjointFrom");
    const record = GetSetRecord(other);
    if ($tableSize(this) <= record[1]) {
      let at = $tableAfter(this, -1);
      while (at >= 0) {
        if ($call(record[2], record[0], $tableKey(this, at))) return false;
        at = $tableAfter(this, at);
      }
      return true;
    }
    const keys = KeysOf(record);
    for (let next = NextKey(keys); next !== undefined; next = NextKey(keys)) {
      if ($tableHas(this, next[0])) {
        CloseKeys(keys);
        return false;
      }
    }
    return true;
  },
};

// Weak collections are records around a table: 912 WeakMap, 913 WeakSet, 914 WeakRef, 915 FinalizationRegistry.

function WeakTable(value, tag, name) {
  if ($recordTag(value) !== tag) $typeError(name + " called on incompatible receiver " + $shown(value));
  return $recordGet(value, 0);
}

function RequireHeld(value, what) {
  if (!$canBeHeldWeakly(value)) $typeError("Invalid value used " + what);
}

function WeakMap_(iterable) {
  if (new.target === undefined) $typeError("Constructor WeakMap requires 'new'");
  const map = $record(912, ProtoFor(new.target, $$WEAK_MAP_PROTO), $mapNew($$MAP_PROTO));
  if (iterable === undefined || iterable === null) return map;
  const adder = map.set;
  if (!$isCallable(adder)) $typeError("'set' of the new WeakMap is not a function");
  for (const item of iterable) {
    if (!$isObject(item)) $typeError("Iterator value " + $shown(item) + " is not an entry object");
    $call(adder, map, item[0], item[1]);
  }
  return map;
}

function WeakSet_(iterable) {
  if (new.target === undefined) $typeError("Constructor WeakSet requires 'new'");
  const set = $record(913, ProtoFor(new.target, $$WEAK_SET_PROTO), $setNew($$SET_PROTO));
  if (iterable === undefined || iterable === null) return set;
  const adder = set.add;
  if (!$isCallable(adder)) $typeError("'add' of the new WeakSet is not a function");
  for (const item of iterable) $call(adder, set, item);
  return set;
}

const WeakMapMethods = {
  delete(key) { return $tableDelete(WeakTable(this, 912, "WeakMap.prototype.delete"), key); },
  get(key) { return $tableGet(WeakTable(this, 912, "WeakMap.prototype.get"), key); },
  has(key) { return $tableHas(WeakTable(this, 912, "WeakMap.prototype.has"), key); },
  set(key, value) {
    const table = WeakTable(this, 912, "WeakMap.prototype.set");
    RequireHeld(key, "as weak map key");
    $tableSet(table, key, value);
    return this;
  },
  getOrInsert(key, value) {
    const table = WeakTable(this, 912, "WeakMap.prototype.getOrInsert");
    RequireHeld(key, "as weak map key");
    if ($tableHas(table, key)) return $tableGet(table, key);
    $tableSet(table, key, value);
    return value;
  },
  getOrInsertComputed(key, callback) {
    const table = WeakTable(this, 912, "WeakMap.prototype.getOrInsertComputed");
    RequireHeld(key, "as weak map key");
    RequireFunction(callback);
    if ($tableHas(table, key)) return $tableGet(table, key);
    const value = $call(callback, undefined, key);
    $tableSet(table, key, value);
    return value;
  },
};

const WeakSetMethods = {
  add(value) {
    const table = WeakTable(this, 913, "WeakSet.prototype.add");
    RequireHeld(value, "in weak set");
    $tableSet(table, value, value);
    return this;
  },
  delete(value) { return $tableDelete(WeakTable(this, 913, "WeakSet.prototype.delete"), value); },
  has(value) { return $tableHas(WeakTable(this, 913, "WeakSet.prototype.has"), value); },
};

function WeakRef_(target) {
  if (new.target === undefined) $typeError("Constructor WeakRef requires 'new'");
  RequireHeld(target, "as WeakRef target");
  return $record(914, ProtoFor(new.target, $$WEAK_REF_PROTO), target);
}

const WeakRefMethods = {
  deref() { return WeakTable(this, 914, "WeakRef.prototype.deref"); },
};

// Nothing is ever reclaimed observably, so the callback is never called; registrations only count for `unregister`.
function FinalizationRegistry_(callback) {
  if (new.target === undefined) $typeError("Constructor FinalizationRegistry requires 'new'");
  RequireFunction(callback);
  return $record(915, ProtoFor(new.target, $$FINALIZATION_REGISTRY_PROTO), $mapNew($$MAP_PROTO));
}

const FinalizationRegistryMethods = {
  register(target, held, token = undefined) {
    const table = WeakTable(this, 915, "FinalizationRegistry.prototype.register");
    RequireHeld(target, "as a target of a FinalizationRegistry");
    if ($sameValue(target, held)) $typeError("target and holdings must not be the same");
    if (!$canBeHeldWeakly(token)) {
      if (token !== undefined) $typeError("Invalid unregister token " + $shown(token));
      return undefined;
    }
    $tableSet(table, token, true);
    return undefined;
  },
  unregister(token) {
    const table = WeakTable(this, 915, "FinalizationRegistry.prototype.unregister");
    if (!$canBeHeldWeakly(token)) $typeError("Invalid unregister token " + $shown(token));
    return $tableDelete(table, token);
  },
};
