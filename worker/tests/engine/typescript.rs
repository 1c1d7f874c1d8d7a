//! TypeScript: types are removed, run-time syntax stays, lines stay correct.

use crate::harness::{Engine, exception_of, json_of};
use vm_system_protocol::model::ExecutionKind;
use vm_system_protocol::worker::{Outcome, SourceFormat};

fn run(engine: &mut Engine, source: &str) -> vm_system_protocol::worker::Done {
    engine.run(ExecutionKind::RunFile, "app.ts", SourceFormat::TypeScript, source)
}

#[test]
fn types_enums_namespaces_and_parameter_properties_work() {
    let mut engine = Engine::new();
    let done = run(
        &mut engine,
        "interface Point { x: number; y?: number }
enum Colour { Red, Green = 'g', Blue = 4 }
namespace Geo { export const origin: Point = { x: 0 } }
class Shape<T extends Point> { constructor(private readonly at: T, public name: string = 'shape') {} where(): T { return this.at } }
abstract class Base { abstract f(): void }
const shape = new Shape<Point>({ x: 3 } as Point);
type Alias = string | number;
function generic<T>(value: T): T { return value!; }
let later: Alias = generic<number>(5) satisfies Alias;
console.log(shape.where().x, shape.name, Colour.Red, Colour[4], Colour.Green, Geo.origin.x, later);
await Promise.resolve();
[shape.name, Colour.Blue];",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(engine.console(), ["3 shape 0 Blue g 0 5"]);
    assert_eq!(json_of(&done), "[\"shape\",4]");
}

#[test]
fn stacks_name_the_lines_of_the_typescript_text() {
    let mut engine = Engine::new();
    let done = run(
        &mut engine,
        "interface A {\n  a: number;\n}\n\ntype B = A;\n\nfunction fail(b: B): never {\n  throw new Error('ts ' + b.a);\n}\n\nfail({ a: 1 });",
    );
    let (message, stack) = exception_of(&done).expect("an exception");
    assert_eq!(message, "Error: ts 1");
    assert!(stack.contains("at fail (app.ts:8:"), "{stack}");
    assert!(stack.contains("at app.ts:11:"), "{stack}");
}

#[test]
fn syntax_errors_have_a_position_and_decorators_are_refused() {
    let mut engine = Engine::new();
    let done = run(&mut engine, "let a: number = 1;\nlet b: = 2;");
    assert!(matches!(done.outcome, Outcome::SyntaxError { .. }), "{:?}", done.outcome);
    assert!(exception_of(&done).expect("an exception").1.contains("app.ts:2:"), "{:?}", done.events);
    let done = run(&mut engine, "function d(c: any) {}\n@d class C {}");
    let Outcome::SyntaxError { message } = &done.outcome else { panic!("{:?}", done.outcome) };
    assert!(message.contains("decorators are not supported"), "{message}");
}

#[test]
fn typescript_modules_are_imported_and_required() {
    let mut engine = Engine::new()
        .file("lib.ts", "export const twice = (n: number): number => n * 2; export type T = string;")
        .file("cjs.ts", "const value: number = 7; module.exports = { value };");
    let done = engine.run(
        ExecutionKind::RunFile,
        "main.ts",
        SourceFormat::TypeScriptModule,
        "import { twice, type T } from './lib.ts'; const t: T = 'x'; console.log(twice(4), t)",
    );
    assert_eq!(done.outcome, Outcome::Ok, "{:?}", done.events);
    assert_eq!(engine.console(), ["8 x"]);
    assert_eq!(engine.value("require('./cjs.ts').value"), "7");
}
