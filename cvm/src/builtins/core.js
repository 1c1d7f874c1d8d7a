// What opcodes and other builtins call: conversions, iterator closing, property copying.

function ToPrimitive(input, hint) {
  const exotic = input[$$SYM_TO_PRIMITIVE];
  if (exotic !== undefined && exotic !== null) {
    if (!$isCallable(exotic)) $typeError("Symbol.toPrimitive is not a function");
    const result = $call(exotic, input, hint);
    if ($isObject(result)) $typeError("Cannot convert object to primitive value");
    return result;
  }
  const first = hint === "string" ? input.toString : input.valueOf;
  if ($isCallable(first)) {
    const result = $call(first, input);
    if (!$isObject(result)) return result;
  }
  const second = hint === "string" ? input.valueOf : input.toString;
  if ($isCallable(second)) {
    const result = $call(second, input);
    if (!$isObject(result)) return result;
  }
  $typeError("Cannot convert object to primitive value");
}

// A native wants the operand at `index` (-1 is `this`) as a primitive, and then its call again.
function RetryCall(f, thisArg, args, index, hint) {
  if (index < 0) thisArg = ToPrimitive(thisArg, hint);
  else args[index] = ToPrimitive(args[index], hint);
  return $callArray(f, thisArg, args);
}

function RetryConstruct(f, newTarget, args, index, hint) {
  if (index >= 0) args[index] = ToPrimitive(args[index], hint);
  return $construct(f, newTarget, args);
}

function AddValues(a, b) { return a + b; }
function LessValues(a, b) { return a < b; }

function InstanceOf(value, target) {
  const method = target[$$SYM_HAS_INSTANCE];
  if (method !== undefined && method !== null) return $call(method, target, value) ? true : false;
  if (!$isCallable(target)) $typeError("Right-hand side of 'instanceof' is not callable");
  return OrdinaryHasInstance(target, value);
}

function OrdinaryHasInstance(target, value) {
  if (!$isCallable(target)) return false;
  const bound = $boundTarget(target);
  if (bound !== undefined) return InstanceOf(value, bound);
  if (!$isObject(value)) return false;
  const proto = target.prototype;
  if (!$isObject(proto)) $typeError("Function has non-object prototype in instanceof check");
  let at = GetProto(value);
  while (at !== null) {
    if (at === proto) return true;
    at = GetProto(at);
  }
  return false;
}

function ConstructSlow(f, newTarget, args) {
  const proto = newTarget.prototype;
  return $enter(f, newTarget, $create($isObject(proto) ? proto : $$OBJECT_PROTO), args);
}

function ClassHeritage(parent) { return $heritage(parent, parent.prototype); }

// The iterator's `return`, for a normal way out. A fast iterator has none.
function IteratorClose(iterator, next) {
  if ($isMarker(next)) return;
  const method = iterator.return;
  if (method === undefined || method === null) return;
  const result = $call(method, iterator);
  if (!$isObject(result)) $typeError("Iterator result is not an object");
}

// The same while an exception is on its way: nothing that happens here shows.
function IteratorCloseSilently(iterator, next) {
  if ($isMarker(next)) return;
  try {
    const method = iterator.return;
    if (method === undefined || method === null) return;
    $call(method, iterator);
  } catch (e) {}
}

// For async iterators: a promise to wait for, or undefined.
function AsyncIteratorCloseSilently(iterator) {
  try {
    const method = iterator.return;
    if (method === undefined || method === null) return undefined;
    return PromiseResolveIntrinsic($call(method, iterator));
  } catch (e) { return undefined; }
}

function AsyncIteratorClose(iterator, next) {
  const method = iterator.return;
  if (method === undefined || method === null) return PromiseResolveIntrinsic($$OBJECT_PROTO);
  return PromiseResolveIntrinsic($call(method, iterator));
}

function AsyncIteratorCloseCheck(result) {
  if (!$isObject(result)) $typeError("Iterator result is not an object");
}

function ForInKeys(object) {
  const keys = [];
  if (object === undefined || object === null) return keys;
  const visited = [];
  let at = $toObject(object);
  let depth = 0;
  while (at !== null) {
    const own = OwnKeys(at);
    for (let i = 0; i < own.length; i++) {
      const key = own[i];
      if (typeof key === "symbol") continue;
      if (depth > 0 && $includesKey(visited, key)) continue;
      const enumerable = IsEnumerable(at, key);
      if (enumerable === undefined) continue;
      $push(visited, key);
      if (enumerable) $push(keys, key);
    }
    at = GetProto(at);
    depth++;
  }
  return keys;
}

// true, false, or undefined for a property that is not there
function IsEnumerable(object, key) {
  if ($isProxy(object)) {
    const d = ProxyGetOwn(object, key);
    return d === undefined ? undefined : d.enumerable;
  }
  return $ownEnumerable(object, key);
}

function CopyDataProperties(target, source) {
  if (source === undefined || source === null) return target;
  const from = $toObject(source);
  const keys = OwnKeys(from);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (IsEnumerable(from, key)) $createData(target, key, from[key]);
  }
  return target;
}

function ObjectRest(source, excluded) {
  const target = $create($$OBJECT_PROTO);
  const from = $toObject(source);
  const keys = OwnKeys(from);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if ($includesKey(excluded, key)) continue;
    if (IsEnumerable(from, key)) $createData(target, key, from[key]);
  }
  return target;
}

// Essential internal methods that also answer for proxies.

function OwnKeys(o) { return $isProxy(o) ? ProxyOwnKeys(o) : $ownKeys(o); }
function GetProto(o) { return $isProxy(o) ? ProxyGetProto(o) : $getProto(o); }
function SetProto(o, p) { return $isProxy(o) ? ProxySetProto(o, p) : $setProto(o, p); }
function GetOwn(o, key) { return $isProxy(o) ? ProxyGetOwn(o, key) : $getOwn(o, key); }
function DefineOwn(o, key, d) {
  if ($isProxy(o)) return ProxyDefine(o, key, d);
  const done = $defineOwn(o, key, d);
  return done === undefined ? DefineElement(o, key, d) : done;
}
function DeleteKey(o, key) { return $isProxy(o) ? ProxyDelete(o, key) : $delete(o, key); }
function IsExtensible(o) { return $isProxy(o) ? ProxyIsExtensible(o) : $isExtensible(o); }
function PreventExtensions(o) { return $isProxy(o) ? ProxyPreventExtensions(o) : $preventExtensions(o); }

function HasOwn(o, key) {
  if ($isProxy(o)) return ProxyGetOwn(o, key) !== undefined;
  return $ownEnumerable(o, key) !== undefined;
}

function CreateDataOrThrow(o, key, value) {
  const done = $isProxy(o) ? ProxyDefine(o, key, DataDescriptor(value)) : $createData(o, key, value);
  if (done === undefined) $putElement(o, key, value);
  else if (!done) {
    $typeError("Cannot define property '" + $shown(key) + "'");
  }
}

// `Set(o, key, value, true)`
function SetOrThrow(o, key, value) { o[key] = value; }

function DeleteOrThrow(o, key) {
  if (!DeleteKey(o, key)) $typeError("Cannot delete property '" + $shown(key) + "'");
}

function DataDescriptor(value) {
  const d = $create(null);
  d.value = value; d.writable = true; d.enumerable = true; d.configurable = true;
  return d;
}

function ToPropertyDescriptor(from) {
  if (!$isObject(from)) $typeError("Property description must be an object: " + $shown(from));
  const d = $create(null);
  if ("enumerable" in from) d.enumerable = from.enumerable ? true : false;
  if ("configurable" in from) d.configurable = from.configurable ? true : false;
  if ("value" in from) d.value = from.value;
  if ("writable" in from) d.writable = from.writable ? true : false;
  if ("get" in from) {
    const get = from.get;
    if (get !== undefined && !$isCallable(get)) $typeError("Getter must be a function: " + $shown(get));
    d.get = get;
  }
  if ("set" in from) {
    const set = from.set;
    if (set !== undefined && !$isCallable(set)) $typeError("Setter must be a function: " + $shown(set));
    d.set = set;
  }
  if (("get" in d || "set" in d) && ("value" in d || "writable" in d)) {
    $typeError("Invalid property descriptor. Cannot both specify accessors and a value or writable attribute");
  }
  return d;
}

function FromPropertyDescriptor(d) {
  if (d === undefined) return undefined;
  const o = $create($$OBJECT_PROTO);
  if ("value" in d) { $createData(o, "value", d.value); $createData(o, "writable", d.writable); }
  else { $createData(o, "get", d.get); $createData(o, "set", d.set); }
  $createData(o, "enumerable", d.enumerable);
  $createData(o, "configurable", d.configurable);
  return o;
}

function SpeciesConstructor(o, fallback) {
  const c = o.constructor;
  if (c === undefined) return fallback;
  if (!$isObject(c)) $typeError("The .constructor property is not an object");
  const s = c[$$SYM_SPECIES];
  if (s === undefined || s === null) return fallback;
  if ($isConstructor(s)) return s;
  $typeError("object.constructor[Symbol.species] is not a constructor");
}

// Prototype for `new.target`, which may have a getter.
function ProtoFor(newTarget, fallback) {
  const proto = newTarget.prototype;
  return $isObject(proto) ? proto : fallback;
}

// Elements of an array-like as an internal array.
function ListFromArrayLike(o) {
  if (!$isObject(o)) $typeError("CreateListFromArrayLike called on non-object");
  const n = $toLength(o.length);
  const list = [];
  for (let i = 0; i < n; i++) $push(list, o[i]);
  return list;
}

// Getting an iterator: an internal record [iterator, next].
function OpenIterator(value, method) {
  if (!$isCallable(method)) $typeError($shown(value) + " is not iterable");
  const iterator = $call(method, value);
  if (!$isObject(iterator)) $typeError("Result of the Symbol.iterator method is not an object");
  return [iterator, iterator.next];
}
