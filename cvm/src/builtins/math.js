// `Math.sumPrecise`: reads an iterable.

const MathMethods = {
  sumPrecise(items) {
    if (items === undefined || items === null) $typeError("Math.sumPrecise called on null or undefined");
    const numbers = [];
    for (const item of items) {
      if (typeof item !== "number") $typeError("Math.sumPrecise accepts numbers only");
      $push(numbers, item);
    }
    return $sumPrecise(numbers);
  },
};
