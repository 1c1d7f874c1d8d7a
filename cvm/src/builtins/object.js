// Object: the constructor's functions and the prototype's methods.

function Object_(value) {
  if (new.target !== undefined && new.target !== $activeFunction()) return $create(ProtoFor(new.target, $$OBJECT_PROTO));
  if (value === undefined || value === null) return $create($$OBJECT_PROTO);
  return $toObject(value);
}

function DefineProperties(o, properties) {
  const props = $toObject(properties);
  const keys = OwnKeys(props);
  const descriptors = [];
  for (let i = 0; i < keys.length; i++) {
    if (!IsEnumerable(props, keys[i])) continue;
    const d = ToPropertyDescriptor(props[keys[i]]);
    $push(descriptors, keys[i]);
    $push(descriptors, d);
  }
  for (let i = 0; i < descriptors.length; i += 2) DefineOrThrow(o, descriptors[i], descriptors[i + 1]);
  return o;
}

function DefineOrThrow(o, key, d) {
  if (!DefineValue(o, key, d)) $typeError("Cannot redefine property: " + $shown(key));
}

// kind: 0 keys, 1 values, 2 entries
function EnumerableOwn(o, kind) {
  const keys = OwnKeys(o);
  const list = [];
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (typeof key === "symbol") continue;
    if (!IsEnumerable(o, key)) continue;
    if (kind === 0) { $push(list, key); continue; }
    const value = o[key];
    $push(list, kind === 1 ? value : [key, value]);
  }
  return list;
}

function SetIntegrity(o, frozen) {
  if (!PreventExtensions(o)) return false;
  if (!$isProxy(o)) { $setIntegrity(o, frozen); return true; }
  const keys = OwnKeys(o);
  for (let i = 0; i < keys.length; i++) {
    const d = $create(null);
    d.configurable = false;
    if (frozen) {
      const own = GetOwn(o, keys[i]);
      if (own === undefined) continue;
      if ("value" in own) d.writable = false;
    }
    DefineOrThrow(o, keys[i], d);
  }
  return true;
}

function TestIntegrity(o, frozen) {
  if (IsExtensible(o)) return false;
  const keys = OwnKeys(o);
  for (let i = 0; i < keys.length; i++) {
    const d = GetOwn(o, keys[i]);
    if (d === undefined) continue;
    if (d.configurable) return false;
    if (frozen && "value" in d && d.writable) return false;
  }
  return true;
}

function AddEntries(target, iterable, add) {
  const it = OpenIterator(iterable, iterable[$$SYM_ITERATOR]);
  while (true) {
    const step = $call(it[1], it[0]);
    if (!$isObject(step)) $typeError("Iterator result is not an object");
    if (step.done) return target;
    const item = step.value;
    try {
      if (!$isObject(item)) $typeError("Iterator value " + $shown(item) + " is not an entry object");
      add(item[0], item[1]);
    } catch (e) {
      IteratorCloseSilently(it[0], it[1]);
      throw e;
    }
  }
}

const ObjectStatics = {
  assign(target, source) {
    const to = $toObject(target);
    for (let i = 1; i < arguments.length; i++) {
      const next = arguments[i];
      if (next === undefined || next === null) continue;
      const from = $toObject(next);
      const keys = OwnKeys(from);
      for (let j = 0; j < keys.length; j++) if (IsEnumerable(from, keys[j])) to[keys[j]] = from[keys[j]];
    }
    return to;
  },
  create(O, Properties) {
    if (!$isObject(O) && O !== null) $typeError("Object prototype may only be an Object or null: " + $shown(O));
    const o = $create(O);
    return Properties === undefined ? o : DefineProperties(o, Properties);
  },
  defineProperties(O, Properties) {
    if (!$isObject(O)) $typeError("Object.defineProperties called on non-object");
    return DefineProperties(O, Properties);
  },
  defineProperty(O, P, Attributes) {
    if (!$isObject(O)) $typeError("Object.defineProperty called on non-object");
    const key = $toKey(P);
    DefineOrThrow(O, key, ToPropertyDescriptor(Attributes));
    return O;
  },
  entries(O) { return EnumerableOwn($toObject(O), 2); },
  freeze(O) {
    if ($isObject(O) && !SetIntegrity(O, true)) $typeError("Cannot freeze");
    return O;
  },
  fromEntries(iterable) {
    if (iterable === undefined || iterable === null) $typeError("undefined is not iterable");
    const o = $create($$OBJECT_PROTO);
    return AddEntries(o, iterable, (k, v) => { CreateDataOrThrow(o, $toKey(k), v); });
  },
  getOwnPropertyDescriptor(O, P) {
    const o = $toObject(O);
    return FromPropertyDescriptor(GetOwn(o, $toKey(P)));
  },
  getOwnPropertyDescriptors(O) {
    const o = $toObject(O);
    const keys = OwnKeys(o);
    const result = $create($$OBJECT_PROTO);
    for (let i = 0; i < keys.length; i++) {
      const d = FromPropertyDescriptor(GetOwn(o, keys[i]));
      if (d !== undefined) $createData(result, keys[i], d);
    }
    return result;
  },
  getOwnPropertyNames(O) {
    const keys = OwnKeys($toObject(O));
    const list = [];
    for (let i = 0; i < keys.length; i++) if (typeof keys[i] !== "symbol") $push(list, keys[i]);
    return list;
  },
  getOwnPropertySymbols(O) {
    const keys = OwnKeys($toObject(O));
    const list = [];
    for (let i = 0; i < keys.length; i++) if (typeof keys[i] === "symbol") $push(list, keys[i]);
    return list;
  },
  getPrototypeOf(O) { return GetProto($toObject(O)); },
  groupBy(items, callback) {
    if (items === undefined || items === null) $typeError("undefined is not iterable");
    if (!$isCallable(callback)) $typeError($shown(callback) + " is not a function");
    const groups = $create(null);
    const it = OpenIterator(items, items[$$SYM_ITERATOR]);
    let k = 0;
    while (true) {
      const step = $call(it[1], it[0]);
      if (!$isObject(step)) $typeError("Iterator result is not an object");
      if (step.done) return groups;
      const value = step.value;
      let key;
      try { key = $toKey($call(callback, undefined, value, k)); } catch (e) { IteratorCloseSilently(it[0], it[1]); throw e; }
      if (key in groups) $push(groups[key], value); else $createData(groups, key, [value]);
      k++;
    }
  },
  hasOwn(O, P) {
    const o = $toObject(O);
    return HasOwn(o, $toKey(P));
  },
  is(value1, value2) { return $sameValue(value1, value2); },
  isExtensible(O) { return $isObject(O) ? IsExtensible(O) : false; },
  isFrozen(O) { return $isObject(O) ? TestIntegrity(O, true) : true; },
  isSealed(O) { return $isObject(O) ? TestIntegrity(O, false) : true; },
  keys(O) { return EnumerableOwn($toObject(O), 0); },
  preventExtensions(O) {
    if ($isObject(O) && !PreventExtensions(O)) $typeError("Cannot prevent extensions");
    return O;
  },
  seal(O) {
    if ($isObject(O) && !SetIntegrity(O, false)) $typeError("Cannot seal");
    return O;
  },
  setPrototypeOf(O, proto) {
    if (O === undefined || O === null) $typeError("Object.setPrototypeOf called on null or undefined");
    if (!$isObject(proto) && proto !== null) $typeError("Object prototype may only be an Object or null: " + $shown(proto));
    if ($isObject(O) && !SetProto(O, proto)) $typeError("Cannot set the prototype");
    return O;
  },
  values(O) { return EnumerableOwn($toObject(O), 1); },
};

const ObjectPrototype = {
  hasOwnProperty(V) {
    const key = $toKey(V);
    return HasOwn($toObject(this), key);
  },
  isPrototypeOf(V) {
    if (!$isObject(V)) return false;
    const o = $toObject(this);
    let at = GetProto(V);
    while (at !== null) {
      if (at === o) return true;
      at = GetProto(at);
    }
    return false;
  },
  propertyIsEnumerable(V) {
    const key = $toKey(V);
    return IsEnumerable($toObject(this), key) === true;
  },
  toLocaleString() { return this.toString(); },
  toString() {
    if (this === undefined) return "[object Undefined]";
    if (this === null) return "[object Null]";
    const o = $toObject(this);
    const builtin = $isArray(o) ? "Array" : $classOf(o);
    const tag = o[$$SYM_TO_STRING_TAG];
    return "[object " + (typeof tag === "string" ? tag : builtin) + "]";
  },
  valueOf() { return $toObject(this); },
  get __proto__() { return GetProto($toObject(this)); },
  set __proto__(proto) {
    if (this === undefined || this === null) $typeError("Object.prototype.__proto__ called on null or undefined");
    if (!$isObject(proto) && proto !== null) return undefined;
    if (!$isObject(this)) return undefined;
    if (!SetProto(this, proto)) $typeError("Cannot set the prototype");
    return undefined;
  },
  __defineGetter__(P, getter) {
    const o = $toObject(this);
    if (!$isCallable(getter)) $typeError("Object.prototype.__defineGetter__: Expecting function");
    const d = $create(null);
    d.get = getter; d.enumerable = true; d.configurable = true;
    DefineOrThrow(o, $toKey(P), d);
  },
  __defineSetter__(P, setter) {
    const o = $toObject(this);
    if (!$isCallable(setter)) $typeError("Object.prototype.__defineSetter__: Expecting function");
    const d = $create(null);
    d.set = setter; d.enumerable = true; d.configurable = true;
    DefineOrThrow(o, $toKey(P), d);
  },
  __lookupGetter__(P) {
    let at = $toObject(this);
    const key = $toKey(P);
    while (at !== null) {
      const d = GetOwn(at, key);
      if (d !== undefined) return d.get;
      at = GetProto(at);
    }
  },
  __lookupSetter__(P) {
    let at = $toObject(this);
    const key = $toKey(P);
    while (at !== null) {
      const d = GetOwn(at, key);
      if (d !== undefined) return d.set;
      at = GetProto(at);
    }
  },
};
