"""What the documents say about where things are and who may know whom."""

import ast
import inspect
import tomllib
from abc import ABC
from functools import cache
from pathlib import Path

import pytest

import moot
from moot.modules.coordinator.domain.ports.debate_gateway import IDebateGateway
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.domain.ports.research_expert_gateway import IResearchExpertGateway
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort

SOURCE = Path(moot.__file__).parent
COORDINATOR = SOURCE / "modules" / "coordinator"


def imports(*folders: Path) -> set[str]:
    """Every dotted name imported by the Python files below `folders`."""
    paths = (path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*.py")))
    return {name for path in paths for name in imports_of(path)}


@cache
def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.accepts("A1S-64", "A0-01")
@pytest.mark.parametrize(
    ("layer", "above"),
    [
        ("domain", ("application", "infrastructure", "presentation")),
        ("application", ("infrastructure", "presentation")),
        ("infrastructure", ("presentation",)),
        ("presentation", ("infrastructure",)),
    ],
)
def test_the_coordinator_has_four_layers_that_know_none_above_them(layer, above):
    assert (COORDINATOR / "container.py").is_file()
    used = imports(COORDINATOR / layer)
    assert any(name.startswith("moot.modules.coordinator") for name in used), "there is something in it"
    assert [name for name in used for no in above if name.startswith(f"moot.modules.coordinator.{no}")] == []


@pytest.mark.accepts("A0-01", "A1S-24")
def test_research_is_entered_by_the_coordinator_alone():
    """Experts, debate and judge are put together by the composition roots, and called behind its ports only."""
    experts = tuple(f"moot.modules.{context}" for context in ("research", "debate", "judge"))
    own = tuple(SOURCE / "modules" / context for context in ("research", "debate", "judge"))
    users = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if not any(folder in path.parents for folder in own)
        and any(name.startswith(experts) for name in imports(path))
    }
    assert users == {
        "desk.py",
        "modules/coordinator/container.py",
        "modules/coordinator/infrastructure/adapters/governance_adapter.py",
        "modules/coordinator/infrastructure/adapters/share_facts.py",
        "modules/coordinator/infrastructure/adapters/research_gateway_adapter.py",
        "modules/jobs/infrastructure/batch_desk.py",  # the screen, which judges nothing
    }
    assert not any(folder.joinpath("presentation").exists() for folder in own), (
        "they have no door of their own"
    )


@pytest.mark.accepts("A0-24", "A1N-01")
@pytest.mark.parametrize(
    "path",
    [
        "application/research_orchestration_service.py",
        "application/dtos/research_dtos.py",
        "domain/model/enums.py",
        "domain/dtos/research_dtos.py",
        "domain/ports/research_orchestration.py",
        "domain/ports/research_expert_gateway.py",
        "domain/exceptions.py",
        "infrastructure/adapters/research_gateway_adapter.py",
        "infrastructure/orchestration/graph_state.py",
        "infrastructure/orchestration/graph_builder.py",
        "infrastructure/orchestration/langgraph_orchestrator.py",
        "presentation/rest/research_routes.py",
    ],
)
def test_files_are_where_the_documents_put_them(path):
    assert (COORDINATOR / path).is_file()


@pytest.mark.accepts("A1S-50", "A1S-51", "A0-30")
@pytest.mark.parametrize("layer", ["application", "domain"])
def test_application_and_domain_know_no_langgraph(layer):
    used = imports(COORDINATOR / layer)
    assert used
    assert [name for name in used if name.startswith(("langgraph", "langchain"))] == []


@pytest.mark.accepts("A1S-52", "A0-30")
def test_langgraph_is_used_where_graphs_are_built_only():
    homes = {
        COORDINATOR / "infrastructure" / "orchestration",
        SOURCE / "modules" / "intake" / "infrastructure" / "graph",
    }
    users = {
        path
        for path in SOURCE.rglob("*.py")
        if any(name.startswith(("langgraph", "langchain")) for name in imports(path))
    }
    assert users
    assert {home for home in homes for path in users if home in path.parents} == homes
    assert all(homes & set(path.parents) for path in users)


@pytest.mark.accepts("A1N-14")
def test_application_and_domain_know_nothing_of_the_other_contexts():
    used = imports(COORDINATOR / "application", COORDINATOR / "domain")
    others = [
        n for n in used if n.startswith("moot.modules.") and not n.startswith("moot.modules.coordinator")
    ]
    assert others == []


PORTS = {
    IDebateGateway: ("run_debate", ["symbol", "expert_results"]),
    IJudgeGateway: ("run_verdict", ["symbol", "debate_outcome"]),
    IResearchExpertGateway: ("run_expert", ["expert_type", "symbol", "options"]),
    IResearchOrchestrationPort: ("run", ["request"]),
}


@pytest.mark.accepts("A1S-26", "A1S-28", "A1N-15", "A1N-16", "A0-06", "A0-17", "A2-08")
@pytest.mark.parametrize(("port", "method", "parameters"), [(p, m, a) for p, (m, a) in PORTS.items()])
def test_ports_are_pure_abstractions_with_the_documented_signature(port, method, parameters):
    """None of them carries a session id: that travels by the execution context."""
    function = getattr(port, method)
    assert issubclass(port, ABC)
    assert port.__abstractmethods__ == {method}
    assert inspect.iscoroutinefunction(function)
    assert list(inspect.signature(function).parameters) == ["self", *parameters]
    (body,) = ast.parse(inspect.getsource(function).replace("\n    ", "\n").strip()).body
    assert isinstance(body, ast.AsyncFunctionDef)
    assert len(body.body) == 1, "a docstring and nothing else"


@pytest.mark.accepts("A1S-27", "A1S-29")
@pytest.mark.parametrize("port", ["debate_gateway.py", "judge_gateway.py"])
def test_gateway_ports_import_nothing_of_the_context_they_lead_to(port):
    assert imports(COORDINATOR / "domain" / "ports" / port) == {
        "abc.ABC",
        "abc.abstractmethod",
        "typing.Any",
    }


@pytest.mark.accepts("A1S-66", "A1N-01")
def test_the_routes_are_registered_in_one_place():
    used = imports(SOURCE / "api" / "routes.py")
    assert "moot.modules.coordinator.presentation.rest.research_routes" in used


@pytest.mark.accepts("A0-32")
def test_the_langgraph_version_is_pinned_to_a_minor_and_locked():
    root = SOURCE.parents[1]
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    assert [d for d in declared if d.startswith("langgraph>")] == ["langgraph>=1.2,<1.3"]
    assert "\nlanggraph==1.2." in (root / "requirements.lock").read_text()


@pytest.mark.accepts("A2-01", "A2-02")
def test_who_keeps_what_of_the_record_and_that_ports_hide_where():
    homes = {
        "research_sessions": "modules/coordinator/infrastructure/tables.py",
        "node_executions": "modules/coordinator/infrastructure/tables.py",
        "llm_call_logs": "modules/llm_platform/infrastructure/tables.py",
        "external_api_call_logs": "shared/infrastructure/tables.py",
    }
    for table, home in homes.items():
        declaring = [p for p in SOURCE.rglob("*.py") if f'__tablename__ = "{table}"' in p.read_text("utf-8")]
        assert declaring == [SOURCE / home]
    plain = [
        SOURCE / "modules" / context / layer for context in CONTEXTS for layer in ("application", "domain")
    ]
    assert not [name for name in imports(*plain) if name.startswith("sqlalchemy")]


CONTEXTS = ("coordinator", "llm_platform")


@pytest.mark.accepts("A2-43")
def test_the_record_needs_no_other_service():
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    needed = " ".join(project["dependencies"]).lower()
    brokers = ("celery", "kafka", "pika", "redis", "elasticsearch", "opensearch", "rabbit", "nats")
    assert not [name for name in brokers if name in needed]
