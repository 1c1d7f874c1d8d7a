// Function.prototype: what reads properties of its arguments.

const FunctionPrototype = {
  apply(thisArg, argArray) {
    if (!$isCallable(this)) $typeError("Function.prototype.apply was called on a value that is not a function");
    if (argArray === undefined || argArray === null) return $call(this, thisArg);
    return $callArray(this, thisArg, ListFromArrayLike(argArray));
  },
  bind(thisArg) {
    if (!$isCallable(this)) $typeError("Bind must be called on a function");
    const args = [];
    for (let i = 1; i < arguments.length; i++) $push(args, arguments[i]);
    const f = $bind(this, thisArg, args, GetProto(this));
    let length = 0;
    if (HasOwn(this, "length")) {
      const n = this.length;
      if (typeof n === "number") {
        const m = $toInteger(n) - args.length;
        length = m > 0 ? m : 0;
      }
    }
    const name = this.name;
    $nameBound(f, length, typeof name === "string" ? name : "");
    return f;
  },
  [$$SYM_HAS_INSTANCE](V) { return OrdinaryHasInstance(this, V); },
};
