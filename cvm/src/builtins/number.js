// `new Number(…)` where the prototype to inherit from has to be asked of a getter or a proxy.
function NumberSlow_(...args) {
  const made = $construct($$NUMBER, $$NUMBER, args);
  $setProto(made, ProtoFor(new.target, $$NUMBER_PROTO));
  return made;
}
