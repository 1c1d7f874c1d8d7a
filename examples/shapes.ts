// TypeScript: types are removed before it runs; enums, parameter properties and generics keep their meaning.
// vm-system run examples/shapes.ts
enum Unit {
  Metre = 1,
  Centimetre = 100,
}

interface Shape {
  readonly name: string;
  area(): number;
}

abstract class Named implements Shape {
  constructor(public readonly name: string) {}
  abstract area(): number;
}

class Rectangle extends Named {
  constructor(private width: number, private height: number) {
    super('rectangle');
  }
  area(): number {
    return this.width * this.height;
  }
}

class Circle extends Named {
  constructor(private radius: number) {
    super('circle');
  }
  area(): number {
    return Math.PI * this.radius ** 2;
  }
}

function largest<T extends Shape>(shapes: readonly T[]): T {
  return shapes.reduce((best, shape) => (shape.area() > best.area() ? shape : best));
}

const shapes: Shape[] = [new Rectangle(2, 3), new Circle(1.5), new Rectangle(1, 1)];
const inUnit = (area: number, unit: Unit): string => `${(area * unit ** 2).toFixed(1)} ${Unit[unit]}²`;

for (const shape of shapes) {
  console.log(shape.name.padEnd(10), inUnit(shape.area(), Unit.Metre), inUnit(shape.area(), Unit.Centimetre));
}
const best = largest(shapes) satisfies Shape;
console.log('largest:', best);
