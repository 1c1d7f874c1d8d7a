// `node:util/types`: what a value is, whatever its properties say.
0,function (_own, native, captured) {
  'use strict';
  const { ArrayBuffer, Object } = captured.globals;
  const kind = native.kindOf;
  const is = (...names) => (value) => {
    const found = kind(value);
    return found !== '' && names.includes(found);
  };
  const typed = (name) => (value) => ArrayBuffer.isView(value) && tag(value) === name;
  const typedArray = Object.getPrototypeOf(captured.globals.Uint8Array.prototype);
  const getTag = Object.getOwnPropertyDescriptor(typedArray, captured.globals.Symbol.toStringTag).get;
  const tag = (value) => captured.apply(getTag, value, []);
  const types = {
    isAnyArrayBuffer: is('array_buffer', 'shared_array_buffer'), isArgumentsObject: is('arguments', 'mapped_arguments'),
    isArrayBuffer: is('array_buffer'), isArrayBufferView: ArrayBuffer.isView,
    isAsyncFunction: is('async_function', 'async_generator_function'), isBigInt64Array: typed('BigInt64Array'), isBigIntObject: is('bigint'),
    isBigUint64Array: typed('BigUint64Array'), isBooleanObject: is('boolean'),
    isBoxedPrimitive: is('number', 'string', 'boolean', 'symbol', 'bigint'), isCryptoKey: () => false, isDataView: is('data_view'), isDate: is('date'),
    isExternal: () => false, isFloat32Array: typed('Float32Array'), isFloat64Array: typed('Float64Array'),
    isGeneratorFunction: is('generator_function', 'async_generator_function'), isGeneratorObject: is('generator', 'async_generator'),
    isInt16Array: typed('Int16Array'), isInt32Array: typed('Int32Array'), isInt8Array: typed('Int8Array'), isKeyObject: () => false,
    isMap: is('map'), isMapIterator: is('map_iterator'), isModuleNamespaceObject: is('namespace'), isNativeError: is('error'),
    isNumberObject: is('number'), isPromise: is('promise'), isProxy: is('proxy'), isRegExp: is('regexp'), isSet: is('set'),
    isSetIterator: is('set_iterator'), isSharedArrayBuffer: is('shared_array_buffer'), isStringObject: is('string'),
    isSymbolObject: is('symbol'), isTypedArray: (value) => ArrayBuffer.isView(value) && tag(value) !== undefined,
    isUint16Array: typed('Uint16Array'), isUint32Array: typed('Uint32Array'), isUint8Array: typed('Uint8Array'),
    isUint8ClampedArray: typed('Uint8ClampedArray'), isWeakMap: is('weak_map'), isWeakSet: is('weak_set'),
  };
  return types;
}
