//! Arithmetic and comparison in the hot loop, as macros over its registers.
//!
//! Owns: the fast cases of numbers. Must not: implement the slow cases.

/// Integer or float arithmetic with the slow path for the rest.
macro_rules! arith {
    ($stack:ident, $sp:ident, $slow:lifetime, $next:lifetime, $int:ident, $op:tt) => {{
        let (a, b) = ($stack[$sp - 2], $stack[$sp - 1]);
        let r = match (a, b) {
            (Value::Int(x), Value::Int(y)) => match x.$int(y) {
                Some(r) => Value::Int(r),
                None => Value::Num(f64::from(x) $op f64::from(y)),
            },
            (Value::Num(x), Value::Num(y)) => Value::Num(x $op y),
            (Value::Int(x), Value::Num(y)) => Value::Num(f64::from(x) $op y),
            (Value::Num(x), Value::Int(y)) => Value::Num(x $op f64::from(y)),
            _ => break $slow,
        };
        $sp -= 1;
        $stack[$sp - 1] = r;
        continue $next;
    }};
}

/// Comparison of numbers with the slow path for the rest.
macro_rules! compare {
    ($stack:ident, $sp:ident, $slow:lifetime, $op:tt) => {{
        let (a, b) = ($stack[$sp - 2], $stack[$sp - 1]);
        match (a, b) {
            (Value::Int(x), Value::Int(y)) => x $op y,
            (Value::Num(x), Value::Num(y)) => x $op y,
            (Value::Int(x), Value::Num(y)) => f64::from(x) $op y,
            (Value::Num(x), Value::Int(y)) => x $op f64::from(y),
            _ => break $slow,
        }
    }};
}

/// A comparison that pushes its result.
macro_rules! compare_push {
    ($stack:ident, $sp:ident, $slow:lifetime, $next:lifetime, $op:tt) => {{
        let r = compare!($stack, $sp, $slow, $op);
        $sp -= 1;
        $stack[$sp - 1] = Value::Bool(r);
        continue $next;
    }};
}

/// A comparison that jumps if it does not hold.
macro_rules! compare_jump {
    ($stack:ident, $sp:ident, $pc:ident, $ins:ident, $slow:lifetime, $next:lifetime, $op:tt) => {{
        let r = compare!($stack, $sp, $slow, $op);
        $sp -= 2;
        if !r {
            $pc = $ins.c as usize;
        }
        continue $next;
    }};
}
