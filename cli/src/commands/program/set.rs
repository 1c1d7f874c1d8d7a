//! `program set`

use super::show;
use crate::context::Context;
use crate::error::CliError;
use serde_json::Value;
use vm_system_protocol::control::StateSet;
use vm_system_protocol::input::{NotForScript, parse_for_script};
use vm_system_protocol::json::JsonText;

/// Arguments of `program set`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "EXECUTION")]
    execution: String,
    /// Name of the variable
    #[arg(value_name = "NAME")]
    name: String,
    /// New value as JSON; anything that is not JSON is a string
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    /// Frame of the variable, as `program state` numbers them [default: the innermost one that has the variable]
    #[arg(long, value_name = "N")]
    frame: Option<u32>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let Args { execution, name, value, frame } = args;
    let value = value_of(&value)?;
    let op = StateSet { execution, name, value, frame };
    let run = context.call_once(op, None).await?;
    show::run(context, &run).await
}

/// The value that a text means: JSON, or the text itself.
pub(super) fn value_of(text: &str) -> Result<JsonText, CliError> {
    let value = match parse_for_script(text) {
        Ok(value) => value,
        Err(NotForScript::NotJson(_)) => Value::String(text.to_owned()),
        Err(NotForScript::Unsupported(why)) => return Err(CliError::unfit(format!("the value: {why}"))),
    };
    Ok(JsonText::from_value(&value))
}
