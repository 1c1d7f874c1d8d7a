// Proxy: every trap with its invariants (ECMA-262 10.5), and Reflect.

function ProxyTrap(proxy, name) {
  const handler = $proxyHandler(proxy);
  if (handler === null) $typeError("Cannot perform '" + name + "' on a proxy that has been revoked");
  const trap = handler[name];
  if (trap === undefined || trap === null) return undefined;
  if (!$isCallable(trap)) $typeError("proxy trap '" + name + "' is not a function");
  return trap;
}

function ProxyGet(proxy, key, receiver) {
  const trap = ProxyTrap(proxy, "get");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return GetWithReceiver(target, key, receiver);
  const value = $call(trap, $proxyHandler(proxy), target, key, receiver);
  const d = GetOwn(target, key);
  if (d !== undefined && d.configurable === false) {
    if ("value" in d && d.writable === false && !$sameValue(value, d.value)) $typeError("'get' on proxy: wrong value for a read-only property");
    if ("get" in d && d.get === undefined && value !== undefined) $typeError("'get' on proxy: value for an accessor without getter");
  }
  return value;
}

function GetWithReceiver(target, key, receiver) {
  let at = target;
  while (at !== null) {
    if ($isProxy(at)) return ProxyGet(at, key, receiver);
    const d = $getOwn(at, key);
    if (d !== undefined) {
      if ("value" in d) return d.value;
      return d.get === undefined ? undefined : $call(d.get, receiver);
    }
    if ($elementAt(at, key) === false) return undefined;
    at = $getProto(at);
  }
  return undefined;
}

function SetWithReceiver(target, key, value, receiver) {
  let at = target;
  let d;
  while (at !== null) {
    if ($isProxy(at)) return ProxySet(at, key, value, receiver);
    const element = $elementAt(at, key);
    if (element !== undefined) {
      if (at === receiver) { PutElement(at, key, value); return true; }
      if (!element) return true;
    }
    d = $getOwn(at, key);
    if (d !== undefined) break;
    at = $getProto(at);
  }
  if (d !== undefined && !("value" in d)) {
    if (d.set === undefined) return false;
    $call(d.set, receiver, value);
    return true;
  }
  if (d !== undefined && d.writable === false) return false;
  if (!$isObject(receiver)) return false;
  const own = GetOwn(receiver, key);
  if (own !== undefined) {
    if (!("value" in own) || own.writable === false) return false;
    const change = $create(null);
    change.value = value;
    return DefineValue(receiver, key, change);
  }
  return DefineValue(receiver, key, DataDescriptor(value));
}

// `DefineOwn`, with the conversion that an array's length asks for.
function DefineValue(o, key, d) {
  if (key === "length" && !$isProxy(o) && $isArray(o) && "value" in d) {
    const n = $toUint32(d.value);
    if (n !== $toNumber(d.value)) $rangeError("Invalid array length");
    d.value = n;
  }
  return DefineOwn(o, key, d);
}

function ProxySet(proxy, key, value, receiver) {
  const trap = ProxyTrap(proxy, "set");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return SetWithReceiver(target, key, value, receiver);
  if (!$call(trap, $proxyHandler(proxy), target, key, value, receiver)) return false;
  const d = GetOwn(target, key);
  if (d !== undefined && d.configurable === false) {
    if ("value" in d && d.writable === false && !$sameValue(value, d.value)) $typeError("'set' on proxy: a read-only property cannot change");
    if ("set" in d && d.set === undefined) $typeError("'set' on proxy: an accessor without setter cannot be set");
  }
  return true;
}

function ProxySetOrThrow(proxy, key, value, receiver) {
  if (!(proxy === receiver || $isProxy(proxy) ? ProxySet(proxy, key, value, receiver) : SetWithReceiver(receiver, key, value, receiver))) {
    $typeError("'set' on proxy: trap returned falsish for property '" + $shown(key) + "'");
  }
}

function ProxyHas(proxy, key) {
  const trap = ProxyTrap(proxy, "has");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return key in target;
  const found = $call(trap, $proxyHandler(proxy), target, key) ? true : false;
  if (!found) {
    const d = GetOwn(target, key);
    if (d !== undefined) {
      if (d.configurable === false) $typeError("'has' on proxy: a non-configurable property cannot be hidden");
      if (!IsExtensible(target)) $typeError("'has' on proxy: the target is not extensible");
    }
  }
  return found;
}

function ProxyDelete(proxy, key) {
  const trap = ProxyTrap(proxy, "deleteProperty");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return DeleteKey(target, key);
  if (!$call(trap, $proxyHandler(proxy), target, key)) return false;
  const d = GetOwn(target, key);
  if (d !== undefined) {
    if (d.configurable === false) $typeError("'deleteProperty' on proxy: a non-configurable property cannot be deleted");
    if (!IsExtensible(target)) $typeError("'deleteProperty' on proxy: the target is not extensible");
  }
  return true;
}

function ProxyDeleteOrThrow(proxy, key) {
  if (!ProxyDelete(proxy, key)) $typeError("'deleteProperty' on proxy: trap returned falsish for property '" + $shown(key) + "'");
  return true;
}

function ProxyGetOwn(proxy, key) {
  const trap = ProxyTrap(proxy, "getOwnPropertyDescriptor");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return GetOwn(target, key);
  const result = $call(trap, $proxyHandler(proxy), target, key);
  if (result !== undefined && !$isObject(result)) $typeError("'getOwnPropertyDescriptor' on proxy: neither object nor undefined");
  const own = GetOwn(target, key);
  if (result === undefined) {
    if (own === undefined) return undefined;
    if (own.configurable === false) $typeError("'getOwnPropertyDescriptor' on proxy: a non-configurable property cannot be hidden");
    if (!IsExtensible(target)) $typeError("'getOwnPropertyDescriptor' on proxy: the target is not extensible");
    return undefined;
  }
  const extensible = IsExtensible(target);
  const d = CompleteDescriptor(ToPropertyDescriptor(result));
  if (!IsCompatible(extensible, d, own)) $typeError("'getOwnPropertyDescriptor' on proxy: incompatible descriptor");
  if (d.configurable === false) {
    if (own === undefined || own.configurable === true) $typeError("'getOwnPropertyDescriptor' on proxy: non-configurable for a configurable property");
    if ("writable" in d && d.writable === false && own.writable === true) $typeError("'getOwnPropertyDescriptor' on proxy: read-only for a writable property");
  }
  return d;
}

function CompleteDescriptor(d) {
  if (!("get" in d) && !("set" in d)) {
    if (!("value" in d)) d.value = undefined;
    if (!("writable" in d)) d.writable = false;
  } else {
    if (!("get" in d)) d.get = undefined;
    if (!("set" in d)) d.set = undefined;
  }
  if (!("enumerable" in d)) d.enumerable = false;
  if (!("configurable" in d)) d.configurable = false;
  return d;
}

// `IsCompatiblePropertyDescriptor`, by trying it on a stand-in.
function IsCompatible(extensible, d, own) {
  const probe = $create(null);
  if (own !== undefined) $defineOwn(probe, "p", own);
  if (!extensible) $preventExtensions(probe);
  return $defineOwn(probe, "p", d);
}

function ProxyDefine(proxy, key, d) {
  const trap = ProxyTrap(proxy, "defineProperty");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return DefineOwn(target, key, d);
  const shown = PartialDescriptor(d);
  if (!$call(trap, $proxyHandler(proxy), target, key, shown)) return false;
  const own = GetOwn(target, key);
  const fixed = "configurable" in d && d.configurable === false;
  if (own === undefined) {
    if (!IsExtensible(target)) $typeError("'defineProperty' on proxy: the target is not extensible");
    if (fixed) $typeError("'defineProperty' on proxy: non-configurable for a missing property");
  } else {
    if (!IsCompatible(IsExtensible(target), d, own)) $typeError("'defineProperty' on proxy: incompatible descriptor");
    if (fixed && own.configurable === true) $typeError("'defineProperty' on proxy: non-configurable for a configurable property");
    if ("value" in own && own.configurable === false && own.writable === true && "writable" in d && d.writable === false) {
      $typeError("'defineProperty' on proxy: read-only for a writable property");
    }
  }
  return true;
}

// A descriptor object with just the fields that are there.
function PartialDescriptor(d) {
  const o = $create($$OBJECT_PROTO);
  if ("value" in d) $createData(o, "value", d.value);
  if ("writable" in d) $createData(o, "writable", d.writable);
  if ("get" in d) $createData(o, "get", d.get);
  if ("set" in d) $createData(o, "set", d.set);
  if ("enumerable" in d) $createData(o, "enumerable", d.enumerable);
  if ("configurable" in d) $createData(o, "configurable", d.configurable);
  return o;
}

function ProxyDefineField(proxy, key, value) {
  if (!ProxyDefine(proxy, key, DataDescriptor(value))) $typeError("Cannot define property '" + $shown(key) + "'");
}

function ProxyOwnKeys(proxy) {
  const trap = ProxyTrap(proxy, "ownKeys");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return OwnKeys(target);
  const list = ListFromArrayLike($call(trap, $proxyHandler(proxy), target));
  for (let i = 0; i < list.length; i++) {
    const key = list[i];
    if (typeof key !== "string" && typeof key !== "symbol") $typeError("'ownKeys' on proxy: " + $shown(key) + " is not a valid property name");
    for (let j = 0; j < i; j++) if (list[j] === key) $typeError("'ownKeys' on proxy: trap returned duplicate entries");
  }
  const extensible = IsExtensible(target);
  const keys = OwnKeys(target);
  let found = 0;
  for (let i = 0; i < keys.length; i++) {
    const there = $includesKey(list, keys[i]);
    if (there) { found++; continue; }
    const d = GetOwn(target, keys[i]);
    if (!extensible || (d !== undefined && d.configurable === false)) $typeError("'ownKeys' on proxy: trap result did not include '" + $shown(keys[i]) + "'");
  }
  if (!extensible && found !== list.length) $typeError("'ownKeys' on proxy: trap returned extra keys but the target is not extensible");
  return list;
}

function ProxyGetProto(proxy) {
  const trap = ProxyTrap(proxy, "getPrototypeOf");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return GetProto(target);
  const proto = $call(trap, $proxyHandler(proxy), target);
  if (!$isObject(proto) && proto !== null) $typeError("'getPrototypeOf' on proxy: trap returned neither object nor null");
  if (!IsExtensible(target) && GetProto(target) !== proto) $typeError("'getPrototypeOf' on proxy: the target is not extensible");
  return proto;
}

function ProxySetProto(proxy, proto) {
  const trap = ProxyTrap(proxy, "setPrototypeOf");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return SetProto(target, proto);
  if (!$call(trap, $proxyHandler(proxy), target, proto)) return false;
  if (!IsExtensible(target) && GetProto(target) !== proto) $typeError("'setPrototypeOf' on proxy: the target is not extensible");
  return true;
}

function ProxyIsExtensible(proxy) {
  const trap = ProxyTrap(proxy, "isExtensible");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return IsExtensible(target);
  const result = $call(trap, $proxyHandler(proxy), target) ? true : false;
  if (result !== IsExtensible(target)) $typeError("'isExtensible' on proxy: trap result differs from the target");
  return result;
}

function ProxyPreventExtensions(proxy) {
  const trap = ProxyTrap(proxy, "preventExtensions");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return PreventExtensions(target);
  const result = $call(trap, $proxyHandler(proxy), target) ? true : false;
  if (result && IsExtensible(target)) $typeError("'preventExtensions' on proxy: the target is extensible");
  return result;
}

function ProxyCall(proxy, receiver, args) {
  const trap = ProxyTrap(proxy, "apply");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return $callArray(target, receiver, args);
  return $call(trap, $proxyHandler(proxy), target, receiver, args);
}

function ProxyConstruct(proxy, receiver, args, newTarget) {
  const trap = ProxyTrap(proxy, "construct");
  const target = $proxyTarget(proxy);
  if (trap === undefined) return $construct(target, newTarget, args);
  const result = $call(trap, $proxyHandler(proxy), target, args, newTarget);
  if (!$isObject(result)) $typeError("proxy [[Construct]] must return an object");
  return result;
}

function Proxy_(target, handler) {
  if (new.target === undefined) $typeError("Constructor Proxy requires 'new'");
  return NewProxy(target, handler);
}

function NewProxy(target, handler) {
  if (!$isObject(target) || !$isObject(handler)) $typeError("Cannot create proxy with a non-object as target or handler");
  return $proxyNew(target, handler);
}

const ProxyStatics = {
  revocable(target, handler) {
    const proxy = NewProxy(target, handler);
    const result = $create($$OBJECT_PROTO);
    $createData(result, "proxy", proxy);
    let live = proxy;
    $createData(result, "revoke", $anonymous(() => { if (live !== null) { $proxyRevoke(live); live = null; } }));
    return result;
  },
};

const ReflectStatics = {
  apply(target, thisArgument, argumentsList) {
    if (!$isCallable(target)) $typeError("Function.prototype.apply was called on " + $shown(target) + ", which is not a function");
    return $callArray(target, thisArgument, ListFromArrayLike(argumentsList));
  },
  construct(target, argumentsList) {
    if (!$isConstructor(target)) $typeError($shown(target) + " is not a constructor");
    let newTarget = target;
    if (arguments.length > 2) {
      newTarget = arguments[2];
      if (!$isConstructor(newTarget)) $typeError($shown(newTarget) + " is not a constructor");
    }
    return $construct(target, newTarget, ListFromArrayLike(argumentsList));
  },
  defineProperty(target, propertyKey, attributes) {
    if (!$isObject(target)) $typeError("Reflect.defineProperty called on non-object");
    const key = $toKey(propertyKey);
    return DefineValue(target, key, ToPropertyDescriptor(attributes));
  },
  deleteProperty(target, propertyKey) {
    if (!$isObject(target)) $typeError("Reflect.deleteProperty called on non-object");
    return DeleteKey(target, $toKey(propertyKey));
  },
  get(target, propertyKey) {
    if (!$isObject(target)) $typeError("Reflect.get called on non-object");
    return GetWithReceiver(target, $toKey(propertyKey), arguments.length > 2 ? arguments[2] : target);
  },
  getOwnPropertyDescriptor(target, propertyKey) {
    if (!$isObject(target)) $typeError("Reflect.getOwnPropertyDescriptor called on non-object");
    return FromPropertyDescriptor(GetOwn(target, $toKey(propertyKey)));
  },
  getPrototypeOf(target) {
    if (!$isObject(target)) $typeError("Reflect.getPrototypeOf called on non-object");
    return GetProto(target);
  },
  has(target, propertyKey) {
    if (!$isObject(target)) $typeError("Reflect.has called on non-object");
    return propertyKey in target;
  },
  isExtensible(target) {
    if (!$isObject(target)) $typeError("Reflect.isExtensible called on non-object");
    return IsExtensible(target);
  },
  ownKeys(target) {
    if (!$isObject(target)) $typeError("Reflect.ownKeys called on non-object");
    return OwnKeys(target);
  },
  preventExtensions(target) {
    if (!$isObject(target)) $typeError("Reflect.preventExtensions called on non-object");
    return PreventExtensions(target);
  },
  set(target, propertyKey, V) {
    if (!$isObject(target)) $typeError("Reflect.set called on non-object");
    return SetWithReceiver(target, $toKey(propertyKey), V, arguments.length > 3 ? arguments[3] : target);
  },
  setPrototypeOf(target, proto) {
    if (!$isObject(target)) $typeError("Reflect.setPrototypeOf called on non-object");
    if (!$isObject(proto) && proto !== null) $typeError("Object prototype may only be an Object or null");
    return SetProto(target, proto);
  },
};
