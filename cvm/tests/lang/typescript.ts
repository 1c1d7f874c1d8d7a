// TypeScript that means something at run time, and types that do not.
enum F { A = 1, B = A << 1, C = A | B, D = `x`, E = "y".length }
const enum G { X = F.B, Y }
console.log(JSON.stringify(F), G.X, G.Y);
abstract class P { constructor(protected readonly x: number, private y = 2) {} abstract f(): void; get s(): number { return this.x + this.y; } }
class Q extends P { f() {} declare z: string; w!: number; }
console.log(new Q(5).s, Object.keys(new Q(1)).join());
function over(a: string): void; function over(a: number): void; function over(a: any) { console.log(a as string, a!, <any>a satisfies any); }
over(1);
type T = { a: 1 }; interface I { b: 2 }
declare const zz: number; declare function ff(): void; declare module "x" { }
let u: T | undefined = undefined; console.log(u?.a);
enum H { 'a-b' = 3, c, D = H.c * 2, L = F.E + 1, fn = [1, 2].map((n) => n + c)[1] }
console.log(JSON.stringify(H));
class Base { constructor(public a = 1) {} }
class Derived extends Base {
  field = this.a + 1;
  constructor(private readonly b: string, public c?: number) { super(10); this.late = this.b + this.a; }
  late: string;
  get all() { return [this.a, this.field, this.b, this.c, this.late].join(); }
}
console.log(new Derived("b", 3).all, Object.keys(new Derived("x")).join());
