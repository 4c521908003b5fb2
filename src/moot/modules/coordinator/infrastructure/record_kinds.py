"""Everything a session's record can hold, known without a database: so that a pack can be examined anywhere."""

from moot.modules.coordinator.infrastructure.persistence.session_repository import NODE, SESSION, SESSION_END
from moot.modules.governance.container import DECISION_KINDS
from moot.modules.llm_platform.container import CALL_KINDS
from moot.shared.domain.audit import Chain, Verification
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.audit_trail import Kind
from moot.shared.infrastructure.audit_verification import examine
from moot.shared.infrastructure.call_audit import EXTERNAL_KINDS

KINDS = (SESSION, SESSION_END, NODE, *CALL_KINDS, *EXTERNAL_KINDS, *DECISION_KINDS)
RECORD_KINDS: dict[str, Kind] = {kind.name: kind for kind in KINDS}


def examine_record(chain: Chain, locale: Locale) -> Verification:
    return examine(chain, RECORD_KINDS, locale)
