//! The names that `docs/openapi.json` lists are those of the code.

use serde_json::Value;
use std::collections::BTreeSet;
use vm_system_api::rest::openapi::TEXT;
use vm_system_core::signal_name;
use vm_system_policy::MODULES;
use vm_system_policy::globals::{SWITCHABLE, built_ins};
use vm_system_protocol::model::{
    CapabilityKind, ConsoleLevel, Engine, EventPayload, ExecutionKind, ExecutionStatus, HttpRecord, JsType,
    OnCrash, ResultValue, SessionEventType, SessionStatus, StartupMode,
};

fn set<T: ToString>(names: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    names.into_iter().map(|name| name.to_string()).collect()
}

/// The strings of an enum; a `null` is not one of them.
fn described(document: &Value, pointer: &str) -> BTreeSet<String> {
    let members = document.pointer(pointer).and_then(Value::as_array);
    let members = members.unwrap_or_else(|| panic!("{pointer} is no enum"));
    let names = set(members.iter().filter_map(Value::as_str));
    assert_eq!(
        names.len(),
        members.iter().filter(|member| !member.is_null()).count(),
        "{pointer}: twice, or no text"
    );
    names
}

/// One event of each type; the match has no wildcard, so that a new type does not compile here until it has a row.
fn event_types() -> BTreeSet<String> {
    let text = String::new;
    let value =
        ResultValue { kind: JsType::Null, preview: text(), json: None, truncated: false, full_bytes: None };
    let level = ConsoleLevel::Log;
    let http = HttpRecord {
        method: text(),
        origin: text(),
        path: text(),
        status: None,
        error: None,
        sent: 0,
        received: 0,
        ms: 0,
    };
    let all = [
        EventPayload::InputEcho { text: text() },
        EventPayload::console(level, text()),
        EventPayload::Value(value),
        EventPayload::Exception {
            message: text(),
            stack: text(),
            code: None,
            truncated: false,
            full_bytes: None,
        },
        EventPayload::System { message: text(), level, code: None },
        EventPayload::Stdout { text: text() },
        EventPayload::Stderr { text: text() },
        EventPayload::Task { task_id: vm_system_protocol::ids::TaskId::from_bytes([0; 16]), prompt: text() },
        EventPayload::Http(Box::new(http)),
    ];
    let row = |payload: &EventPayload| match payload {
        EventPayload::InputEcho { .. } => 0,
        EventPayload::Console { .. } => 1,
        EventPayload::Value(_) => 2,
        EventPayload::Exception { .. } => 3,
        EventPayload::System { .. } => 4,
        EventPayload::Stdout { .. } => 5,
        EventPayload::Stderr { .. } => 6,
        EventPayload::Task { .. } => 7,
        EventPayload::Http(_) => 8,
    };
    assert!(all.iter().enumerate().all(|(at, payload)| row(payload) == at));
    set(all.iter().map(EventPayload::type_name))
}

#[test]
fn each_enum_of_the_description_has_the_names_of_its_source() {
    let document: Value = serde_json::from_str(TEXT).expect("json");
    let schemas = |name: &str| format!("/components/schemas/{name}");
    let signals = (1..=31).map(signal_name).flat_map(|name| {
        let short = name.strip_prefix("SIG").expect("a prefix").to_owned();
        [name, short]
    });
    for (place, names) in [
        ("PlainModuleCapability/properties/name/enum", set(built_ins())),
        ("GlobalCapability/properties/name/examples", set(SWITCHABLE)),
        ("ModuleNameBody/properties/name/examples", set(MODULES)),
        ("KillBody/properties/signal/oneOf/2/enum", set(signals)),
        ("CapabilityKind/enum", set(CapabilityKind::ALL)),
        ("ConsoleLevel/enum", set(ConsoleLevel::ALL)),
        ("Engine/enum", set(Engine::ALL)),
        ("ExecutionKind/enum", set(ExecutionKind::ALL)),
        ("ExecutionStatus/enum", set(ExecutionStatus::ALL)),
        ("JsType/enum", set(JsType::ALL)),
        ("OnCrash/enum", set(OnCrash::ALL)),
        ("SessionEventType/enum", set(SessionEventType::ALL)),
        ("SessionStatus/enum", set(SessionStatus::ALL)),
        ("StartupMode/enum", set(StartupMode::ALL)),
    ] {
        assert_eq!(described(&document, &schemas(place)), names, "{place}");
    }
    let forms = document.pointer(&schemas("Event/discriminator/mapping")).and_then(Value::as_object);
    assert_eq!(set(forms.expect("a mapping").keys()), event_types());
}
