//! The contract of every store: each case gets an empty store of the kind under test.

use super::fixture::with_store;
use vm_system_record::{Rejection, StoreError};

mod audit_and_keys;
mod durable;
mod executions;
mod holders;
mod schedules;
mod sessions;
mod templates;

/// Declares the cases as tests of one kind of store: `$with` calls a case with a new one, and shuts it down.
macro_rules! contract_of {
    ($store:ident, $with:ident) => {
        contract_of! { @cases $store, $with,
            audit_and_keys::{
                batch_is_all_or_nothing,
                refused_batch_does_not_affect_others,
                ids_are_found_by_their_bounds,
                idempotency_key_is_held_until_it_expires_or_is_released,
                audit_log_and_meta_values_are_kept,
                pruning_deletes_whole_executions_oldest_first_within_its_bound,
                closed_store_refuses_by_name,
            }
            durable::{
                program_gets_a_version_each_time_it_is_loaded,
                an_imported_program_is_seen_with_its_last_version,
                unused_versions_are_deleted_when_there_are_newer_ones,
                what_an_execution_wrote_behind_its_last_pause_goes_with_its_end,
                tasks_of_an_execution_are_numbered_and_end_in_any_order,
                state_is_the_newest_version_of_each_page_and_compaction_keeps_it,
                current_execution_of_a_client_is_kept_until_it_is_deleted,
            }
            holders::{
                batch_of_a_holder_that_was_fenced_off_changes_nothing,
                checkpoint_that_goes_on_from_another_one_is_refused,
                executions_that_nothing_would_wake_are_found,
                programs_that_run_or_are_due_are_claimed_by_one,
                use_of_limits_is_read_as_it_was_stored,
            }
            executions::{
                execution_runs_to_its_end_once,
                result_of_a_session_has_the_type_and_the_preview_of_its_value_event,
                error_is_read_with_its_size,
                events_of_every_kind_are_read_unchanged,
                execution_name_is_unique_among_the_owners_unfinished_ones,
            }
            schedules::{
                schedule_is_read_as_it_was_stored_by_its_owner_alone,
                of_two_changes_for_one_revision_the_second_is_refused_with_its_batch,
                schedules_are_due_in_the_order_of_their_times_and_paused_ones_never,
                queued_time_is_due_when_the_execution_has_ended,
            }
            sessions::{
                session_needs_a_template_and_keeps_its_snapshot,
                ended_session_never_changes,
                the_end_of_a_session_leaves_no_execution_running_and_the_end_of_that_may_follow,
                a_session_that_continues_with_another_worker_starts_again_with_message_0,
                lists_are_newest_first_and_pages_join_without_gap_or_double,
                restart_of_the_host_ends_sessions_without_a_worker,
            }
            templates::{
                template_is_read_with_all_its_parts_in_order,
                template_name_is_unique_among_an_owners_active_ones,
                deleted_template_is_hidden_and_its_sessions_continue,
                modules_and_libraries_are_added_and_removed_once,
                capability_and_startup_file_are_unique_in_their_template,
                sessions_are_found_by_status_template_and_workspace,
            }
        }
    };
    (@cases $store:ident, $with:ident, $($module:ident::{ $($case:ident,)+ })+) => {
        mod $store {
            $($(
                #[tokio::test]
                async fn $case() {
                    super::$with(super::$module::$case).await;
                }
            )+)+
        }
    };
}

contract_of!(sqlite, with_store);

fn rejected<T>(rejection: Rejection) -> Result<T, StoreError> {
    Err(StoreError::Rejected(rejection))
}
