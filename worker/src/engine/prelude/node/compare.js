// Deep equality, strict and loose, as `node:assert` and `util.isDeepStrictEqual` define it.
0,function (_own, _native, captured) {
  'use strict';
  const { Map, Number, Object, Reflect } = captured.globals;
  const { is, keys, getPrototypeOf, getOwnPropertySymbols, prototype } = Object;
  const types = captured.part('node_types');
  const tagOf = (value) => captured.apply(prototype.toString, value, []);
  const hasOwn = (object, key) => Reflect.getOwnPropertyDescriptor(object, key) !== undefined;
  const enumerable = (object, key) => Reflect.getOwnPropertyDescriptor(object, key)?.enumerable === true;
  const symbolsOf = (object) => getOwnPropertySymbols(object).filter((key) => enumerable(object, key));

  const deepEqual = (a, b, strict, seen = new Map()) => {
    if (a === b) return a !== 0 || !strict || is(a, b);
    if (strict) {
      if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return Number.isNaN(a) && Number.isNaN(b);
      if (getPrototypeOf(a) !== getPrototypeOf(b)) return false;
    } else {
      const [objectA, objectB] = [a !== null && typeof a === 'object', b !== null && typeof b === 'object'];
      // eslint-disable-next-line eqeqeq
      if (!objectA) return !objectB && (a == b || (Number.isNaN(a) && Number.isNaN(b)));
      if (!objectB) return false;
    }
    if (tagOf(a) !== tagOf(b)) return false;
    if (captured.globals.Array.isArray(a) !== captured.globals.Array.isArray(b)) return false;
    if (!sameKind(a, b, strict)) return false;
    if (seen.get(a) === b) return true;
    const before = seen.get(a);
    seen.set(a, b);
    const equal = sameContent(a, b, strict, seen);
    if (before === undefined) seen.delete(a);
    else seen.set(a, before);
    return equal;
  };
  const sameKind = (a, b, strict) => {
    if (types.isDate(a)) return types.isDate(b) && is(captured.apply(captured.dateGetTime, a, []), captured.apply(captured.dateGetTime, b, []));
    if (types.isRegExp(a)) return types.isRegExp(b) && a.source === b.source && a.flags === b.flags && a.lastIndex === b.lastIndex;
    if (types.isNativeError(a)) {
      if (!types.isNativeError(b) || a.message !== b.message || a.name !== b.name) return false;
    }
    if (types.isAnyArrayBuffer(a)) {
      const [left, right] = [new captured.globals.Uint8Array(a), new captured.globals.Uint8Array(b)];
      return left.length === right.length && left.every((byte, index) => byte === right[index]);
    }
    if (types.isTypedArray(a) || types.isDataView(a)) {
      if (a.byteLength !== b.byteLength) return false;
      if (types.isTypedArray(a)) {
        return types.isTypedArray(b) && a.length === b.length &&
          a.every((item, index) => (strict ? is(item, b[index]) : item === b[index] || (Number.isNaN(item) && Number.isNaN(b[index]))));
      }
    }
    if (types.isBoxedPrimitive(a)) return types.isBoxedPrimitive(b) && is(a.valueOf(), b.valueOf());
    if (types.isSet(a) !== types.isSet(b) || types.isMap(a) !== types.isMap(b)) return false;
    return true;
  };
  const sameContent = (a, b, strict, seen) => {
    const own = types.isTypedArray(a) ? keys(a).filter((key) => !(+key >= 0)) : keys(a);
    const other = types.isTypedArray(b) ? keys(b).filter((key) => !(+key >= 0)) : keys(b);
    if (own.length !== other.length) return false;
    if (captured.globals.Array.isArray(a) && a.length !== b.length) return false;
    for (const key of own) if (!hasOwn(b, key) || !enumerable(b, key)) return false;
    if (strict) {
      const symbols = symbolsOf(a);
      if (symbols.length !== symbolsOf(b).length) return false;
      for (const key of symbols) if (!enumerable(b, key) || !deepEqual(a[key], b[key], strict, seen)) return false;
    }
    if (types.isSet(a) && !sameSets(a, b, strict, seen)) return false;
    if (types.isMap(a) && !sameMaps(a, b, strict, seen)) return false;
    for (const key of own) if (!deepEqual(a[key], b[key], strict, seen)) return false;
    return true;
  };
  const sameSets = (a, b, strict, seen) => {
    if (a.size !== b.size) return false;
    const rest = [...b].filter((item) => !a.has(item));
    for (const item of a) {
      if (b.has(item)) continue;
      const at = rest.findIndex((other) => deepEqual(item, other, strict, seen));
      if (at === -1) return false;
      rest.splice(at, 1);
    }
    return true;
  };
  const sameMaps = (a, b, strict, seen) => {
    if (a.size !== b.size) return false;
    const rest = [...b].filter(([key]) => !a.has(key));
    for (const [key, value] of a) {
      if (b.has(key)) {
        if (!deepEqual(value, b.get(key), strict, seen)) return false;
        continue;
      }
      const at = rest.findIndex(([otherKey, other]) => deepEqual(key, otherKey, strict, seen) && deepEqual(value, other, strict, seen));
      if (at === -1) return false;
      rest.splice(at, 1);
    }
    return true;
  };
  return { deepEqual };
}
