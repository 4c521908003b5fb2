"""Coming in with a key, leaving, and how somebody wants their pages."""

from fastapi import APIRouter, Response

from moot.modules.access.presentation import LOGIN_COOKIE
from moot.shared.domain.errors import TooManyRequests, Unauthenticated
from moot.web.page import A_YEAR, PREFERENCES, Form, Reader

router = APIRouter()


@router.get("/login")
async def login(page: Reader, next: str = "/") -> Response:  # noqa: A002  # as the address says
    return page.render("login.html", next=_local(next))


@router.post("/login")
async def come_in(page: Reader, form: Form) -> Response:
    """The browser keeps a token that no script can read and that no other site has it send."""
    request, to = page.request, _local(form.get("next", "/"))
    address = request.client.host if request.client else ""
    try:
        token = await page.desk.access.login(form.get("key", "").strip(), address)
    except (Unauthenticated, TooManyRequests) as e:
        return page.render("login.html", error=e, status=401, next=to)
    response = page.go(to)
    secure = request.url.scheme == "https"
    response.set_cookie(LOGIN_COOKIE, token, httponly=True, samesite="strict", secure=secure)
    return response


@router.post("/logout")
async def leave(page: Reader) -> Response:
    token = page.request.cookies.get(LOGIN_COOKIE)
    if token:
        await page.desk.access.logout(token)
    response = page.go("/login")
    response.delete_cookie(LOGIN_COOKIE)
    return response


@router.post("/preferences")
async def prefer(page: Reader, form: Form) -> Response:
    """Each in a cookie of its own; what is none of the choices changes nothing."""
    response = page.go(_local(form.get("next", "/")))
    for name, choices in PREFERENCES.items():
        if form.get(name) in (*choices, "auto"):
            response.set_cookie(name, form[name], max_age=A_YEAR, samesite="lax", httponly=True)
    return response


def _local(path: str) -> str:
    """A place on this desk: what begins with two slashes is another machine."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"
