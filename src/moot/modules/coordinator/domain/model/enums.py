"""The experts a desk can ask."""

from enum import StrEnum


class ExpertType(StrEnum):
    TECHNICAL_ANALYST = "technical_analyst"
    FINANCIAL_AUDITOR = "financial_auditor"
    VALUATION_MODELER = "valuation_modeler"
    MACRO_INTELLIGENCE = "macro_intelligence"
    CATALYST_DETECTIVE = "catalyst_detective"
