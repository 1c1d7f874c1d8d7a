// `Promise.allKeyed` and `Promise.allSettledKeyed`: as `all` and `allSettled`, for the enumerable properties of an object.

function CombineKeyed(C, promises, settled) {
  const capability = NewCapability(C);
  try {
    const resolve = C.resolve;
    if (!$isCallable(resolve)) $typeError("Promise resolve or reject function is not callable");
    if (!$isObject(promises)) $typeError($shown(promises) + " is not an object");
    const all = OwnKeys(promises);
    const keys = [];
    const values = [];
    let remaining = 1;
    const finish = () => {
      const result = $create(null);
      for (let i = 0; i < keys.length; i++) $createData(result, keys[i], values[i]);
      $call(capability[1], undefined, result);
    };
    for (let k = 0; k < all.length; k++) {
      if (!IsEnumerable(promises, all[k])) continue;
      const next = $call(resolve, C, promises[all[k]]);
      const i = keys.length;
      $push(keys, all[k]);
      $push(values, undefined);
      let called = false;
      const slot = (wrap) => $anonymous((x) => {
        if (called) return undefined;
        called = true;
        values[i] = wrap === undefined ? x : wrap(x);
        remaining--;
        if (remaining === 0) finish();
        return undefined;
      });
      remaining++;
      if (settled) next.then(slot(SettledFulfilled), slot(SettledRejected));
      else next.then(slot(undefined), capability[2]);
    }
    remaining--;
    if (remaining === 0) finish();
  } catch (e) {
    $call(capability[2], undefined, e);
  }
  return capability[0];
}

const PromiseKeyedStatics = {
  allKeyed(promises) { return CombineKeyed(this, promises, false); },
  allSettledKeyed(promises) { return CombineKeyed(this, promises, true); },
};
