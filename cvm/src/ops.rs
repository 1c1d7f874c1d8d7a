//! The opcode table: a row for each opcode with its byte, operands, stack effect, fuel and meaning.
//!
//! Owns: [`Opcode`], [`TABLE`]. Verifier, disassembler, codec and interpreter all read this table. Bytes are stored:
//! append rows, never renumber. Stacks in the docs are written left to right, with the top last.

/// The meaning of an operand field, for the codec, the verifier and the disassembler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    /// Unused
    None,
    /// Signed number
    Imm,
    /// Unsigned number
    Num,
    /// Any constant
    Const,
    /// A constant that is a string
    Name,
    /// Frame slot of a parameter or local
    Local,
    /// Slot of a scope
    Slot,
    /// Number of scopes outwards
    Depth,
    /// Instruction to jump to
    Target,
    /// Template number
    Template,
    /// Number of arguments or elements on the stack
    Count,
    /// Native number
    Native,
    /// Fixed cell of the realm
    Realm,
}

/// One row of the table.
pub(crate) struct OpcodeRow {
    /// The opcode
    pub op: Opcode,
    /// Mnemonic
    pub name: &'static str,
    /// Meaning of the wide field `c`
    pub c: Operand,
    /// Meaning of the narrow field `b`
    pub b: Operand,
    /// Values popped from the stack, in addition to `b` values if `b` is a count
    pub pops: u8,
    /// Values pushed onto the stack
    pub pushes: u8,
    /// Fuel
    pub fuel: u8,
    /// Meaning
    pub doc: &'static str,
}

macro_rules! ops {
    ($($byte:literal $name:ident $c:ident $b:ident $pops:literal $pushes:literal $doc:literal;)*) => {
        /// An opcode.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the table's last column documents each")]
        pub(crate) enum Opcode { $($name = $byte),* }
        /// All rows in byte order.
        pub(crate) const TABLE: &[OpcodeRow] = &[$(OpcodeRow { op: Opcode::$name, name: stringify!($name), c: Operand::$c, b: Operand::$b,
            pops: $pops, pushes: $pushes, fuel: 1, doc: $doc }),*];
    };
}

ops! {
    0 Nop None None 0 0 "nothing";
    1 Undef None None 0 1 "undefined";
    2 Null None None 0 1 "null";
    3 True None None 0 1 "true";
    4 False None None 0 1 "false";
    5 Int Imm None 0 1 "a small integer";
    6 Const Const None 0 1 "a constant";
    7 Hole None None 0 1 "marker: hole";
    8 Uninit None None 0 1 "marker: not initialised";
    9 Pop None None 1 0 "drop";
    10 Dup None None 1 2 "a -> a a";
    11 Dup2 None None 2 4 "a b -> a b a b";
    12 Swap None None 2 2 "a b -> b a";
    13 Rot3 None None 3 3 "a b c -> c a b";
    14 Rot4 None None 4 4 "a b c d -> d a b c";
    15 LoadLoc Local None 0 1 "a local";
    16 StoreLoc Local None 1 0 "to a local";
    17 TeeLoc Local None 1 1 "to a local, kept on the stack";
    18 LoadLocChk Local None 0 1 "a local; ReferenceError before its initialisation";
    19 StoreLocChk Local None 1 0 "to a local; ReferenceError before its initialisation";
    20 LoadThis None None 0 1 "this";
    21 LoadCallee None None 0 1 "the running function";
    22 NewTarget None None 0 1 "new.target";
    23 PushEnv None None 0 1 "the function's closure scope";
    24 NewScope Num None 1 1 "parent -> scope with c slots";
    25 CopyScope None None 1 1 "scope -> copy";
    26 LoadScope Slot Local 0 1 "slot of the scope in local b";
    27 LoadScopeChk Slot Local 0 1 "same; ReferenceError before its initialisation";
    28 StoreScope Slot Local 1 0 "to a slot of the scope in local b";
    29 StoreScopeChk Slot Local 1 0 "same; ReferenceError before its initialisation";
    30 LoadEnv Slot Depth 0 1 "slot of the closure scope b levels out";
    31 LoadEnvChk Slot Depth 0 1 "same; ReferenceError before its initialisation";
    32 StoreEnv Slot Depth 1 0 "to a slot of a closure scope";
    33 StoreEnvChk Slot Depth 1 0 "same; ReferenceError before its initialisation";
    34 Closure Template None 1 1 "scope -> function";
    35 GetGlobal Name None 0 1 "a global; ReferenceError when missing";
    36 GetGlobalSoft Name None 0 1 "a global or undefined";
    37 SetGlobal Name None 1 0 "assign to a global; ReferenceError when missing";
    38 DeclVar Name None 0 0 "declare a global var";
    39 DeclFunc Name None 1 0 "declare a global function";
    40 GetProp Name None 1 1 "o -> o.name";
    41 GetMethod Name None 1 2 "o -> o.name o";
    42 SetProp Name None 2 1 "o v -> v";
    43 GetElem None None 2 1 "o k -> o[k]";
    44 GetElemMethod None None 2 2 "o k -> o[k] o";
    45 SetElem None None 3 1 "o k v -> v";
    46 DelElem None None 2 1 "o k -> true; TypeError when refused";
    47 In None None 2 1 "k o -> bool";
    48 InstanceOf None None 2 1 "v f -> bool";
    49 GetSuper None None 2 1 "this k -> super[k]";
    50 SetSuper None None 3 1 "this k v -> v";
    51 PrivName Name None 0 1 "a fresh private name";
    52 GetPriv None None 2 1 "o name -> v";
    53 SetPriv None None 3 1 "o name v -> v";
    54 DefPriv None Num 3 1 "o name v -> o; b: 0 field 1 method 2 getter 3 setter";
    55 HasPriv None None 2 1 "o name -> bool";
    56 NewObject None None 0 1 "{}";
    57 NewArray None Count 0 1 "elements -> array";
    58 ArrPush None None 2 1 "a v -> a";
    59 ArrHole None None 1 1 "a -> a with one more hole";
    60 ArrSpread None None 2 1 "a iterable -> a";
    61 DefField Name None 2 1 "o v -> o; an own data property";
    62 DefElem None None 3 1 "o k v -> o; an own data property";
    63 DefMethod None Num 3 1 "o k f -> o; b: 0 method 1 getter 2 setter, +4 enumerable";
    64 SetProtoLit None None 2 1 "o v -> o; __proto__ of an object literal";
    65 CopyProps None None 2 1 "target source -> target";
    66 RestProps None Count 1 1 "source keys -> object with the other properties";
    67 SetName None Num 2 2 "k f -> k f; names an anonymous function; b: 0 plain 1 get 2 set";
    68 Add None None 2 1 "a + b";
    69 Sub None None 2 1 "a - b";
    70 Mul None None 2 1 "a * b";
    71 Div None None 2 1 "a / b";
    72 Mod None None 2 1 "a % b";
    73 Exp None None 2 1 "a ** b";
    74 BitAnd None None 2 1 "a & b";
    75 BitOr None None 2 1 "a | b";
    76 BitXor None None 2 1 "a ^ b";
    77 Shl None None 2 1 "a << b";
    78 Shr None None 2 1 "a >> b";
    79 Ushr None None 2 1 "a >>> b";
    80 Neg None None 1 1 "-a";
    81 Plus None None 1 1 "+a";
    82 BitNot None None 1 1 "~a";
    83 Inc None None 1 1 "a + 1 of a numeric";
    84 Dec None None 1 1 "a - 1 of a numeric";
    85 ToNumeric None None 1 1 "number or bigint";
    86 ToStr None None 1 1 "string; TypeError for a symbol";
    87 ToKey None None 1 1 "property key";
    88 Lt None None 2 1 "a < b";
    89 Le None None 2 1 "a <= b";
    90 Gt None None 2 1 "a > b";
    91 Ge None None 2 1 "a >= b";
    92 Eq None None 2 1 "a == b";
    93 Ne None None 2 1 "a != b";
    94 StrictEq None None 2 1 "a === b";
    95 StrictNe None None 2 1 "a !== b";
    96 Not None None 1 1 "!a";
    97 Typeof None None 1 1 "typeof a";
    98 TemplateObj Const None 0 1 "the array of a tagged template; c: its number";
    99 RegExp Name Num 0 1 "a regular expression; b: flag bits";
    100 Jump Target None 0 0 "go";
    101 JTrue Target None 1 0 "go if truthy";
    102 JFalse Target None 1 0 "go if falsy";
    103 JTrueKeep Target None 1 1 "go if truthy; kept on both ways";
    104 JFalseKeep Target None 1 1 "go if falsy; kept on both ways";
    105 JNotNullishKeep Target None 1 1 "go if neither undefined nor null; kept on both ways";
    106 JNotUndefKeep Target None 1 1 "go if not undefined; kept on both ways";
    107 JNullish Target None 1 0 "go if undefined or null";
    108 Call None Count 2 1 "f this args -> result";
    109 CallSpread None None 3 1 "f this array -> result";
    110 New None Count 1 1 "f args -> object";
    111 NewSpread None None 2 1 "f array -> object";
    112 SuperCall None Count 1 1 "active args -> this";
    113 SuperSpread None None 2 1 "active array -> this";
    114 CallPre Template Count 0 1 "args -> result of a function of the prelude";
    115 CallNat Native Count 0 1 "args -> result of a native";
    116 Ret None None 1 0 "return";
    117 RetDerived None None 2 0 "result this -> return of a derived constructor";
    118 Throw None None 1 0 "throw";
    119 ThrowErr Name Num 0 0 "throw a new error; b: 0 TypeError 1 ReferenceError 2 SyntaxError";
    120 IterFast Target None 1 2 "array -> array marker and go, if its iterator is pristine; else a a";
    121 IterCheck None None 1 1 "TypeError unless an object";
    122 IterDone Target Local 0 0 "go if the fast iterator in local b is at its end";
    123 IterValue Target Local 0 1 "next value of the fast iterator in local b and go; else undefined";
    124 ForInNext Target Local 0 1 "next key of the enumeration in local b; else undefined and go";
    125 InitialYield None None 0 0 "make the generator of this frame and return it";
    126 Yield None None 1 2 "v -> value isReturn";
    127 Await None None 1 1 "promise -> value";
    128 NewClass Template Num 2 2 "heritage scope -> class prototype; b: 1 with heritage";
    129 SetFields None None 2 1 "class f -> class";
    130 RunFields None None 2 1 "this class -> result of the class's field initialiser";
    131 SetHome None None 2 2 "o f -> o f; sets the home object of f";
    132 CheckUninit None None 1 0 "ReferenceError when this was bound already";
    133 CheckThis None None 1 1 "ReferenceError unless this was bound";
    134 Realm Realm None 0 1 "a fixed object or symbol of the realm";
    135 RestArgs Num Local 0 1 "array of the arguments from c on; local b holds them all";
    136 Arguments None Local 0 1 "arguments object from local b";
    137 CheckObjCoercible None None 1 1 "TypeError for undefined and null";
    138 CheckCallable None None 1 1 "TypeError unless callable";
    139 Construct None None 3 1 "f newTarget array -> object";
    140 AsyncStart None None 0 0 "turn this frame into the coroutine of an async function";
    141 YieldStar None None 1 2 "result object -> value mode; mode 0 next 1 throw 2 return";
    142 JUndef Target None 1 0 "go if undefined";
    143 GetIterMethod None None 1 2 "o -> o[Symbol.iterator] o; TypeError unless callable";
    144 IncLoc Local None 0 0 "local + 1, a statement";
    145 DecLoc Local None 0 0 "local - 1, a statement";
    146 LoadLoc2 Local Local 0 2 "locals c and b";
    147 AddInt Imm None 1 1 "a + c";
    148 SubInt Imm None 1 1 "a - c";
    149 JNotLt Target None 2 0 "go unless a < b";
    150 JNotLe Target None 2 0 "go unless a <= b";
    151 JNotGt Target None 2 0 "go unless a > b";
    152 JNotGe Target None 2 0 "go unless a >= b";
    153 JNotSeq Target None 2 0 "go unless a === b";
    154 JSeq Target None 2 0 "go if a === b";
    155 AddLoc Local None 1 0 "local = local + a, a statement";
    156 LtLocLoc Local Local 0 1 "local c < local b";
    157 LtLocInt Imm Local 0 1 "local b < c";
    158 AddLocLoc Local Local 0 0 "local c = local c + local b, a statement";
    159 ToKeyOf None None 2 2 "o k -> o key; TypeError when o is undefined or null";
    160 SortStep Target Local 1 4 "comparison's result -> f this a b and go, or four undefined at the end; a sort in locals b to b + 7";
    161 SetResult None None 1 0 "to the program's result";
}

impl Opcode {
    /// The opcode of a byte.
    pub(crate) fn from_byte(byte: u8) -> Option<Opcode> {
        TABLE.get(byte as usize).map(|row| row.op)
    }

    /// How many locals an instruction uses from local `b` on: an iterator two, an enumeration three, a sort eight.
    pub(crate) fn locals_from_b(self) -> u16 {
        match self {
            Opcode::IterDone | Opcode::IterValue => 2,
            Opcode::ForInNext => 3,
            Opcode::SortStep => crate::vm::sort::LOCALS as u16,
            _ => 1,
        }
    }

    /// Whether the next instruction never follows.
    pub(crate) fn ends_path(self) -> bool {
        matches!(self, Opcode::Jump | Opcode::Ret | Opcode::RetDerived | Opcode::Throw | Opcode::ThrowErr)
    }

    /// The opcode's row.
    #[inline]
    pub(crate) fn row(self) -> &'static OpcodeRow {
        &TABLE[self as usize]
    }
}

/// One instruction in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Instruction {
    /// The operation
    pub op: Opcode,
    /// Narrow operand
    pub b: u16,
    /// Wide operand
    pub c: u32,
}

impl Instruction {
    /// An instruction.
    pub(crate) fn new(op: Opcode, c: u32, b: u16) -> Instruction {
        Instruction { op, b, c }
    }
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn bytes_are_the_positions_in_the_table() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(i, row.op as usize, "{}", row.name);
        }
    }
}
