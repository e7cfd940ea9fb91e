"""A service answers as its fleet does, to the bit, and refuses in one sentence what it must refuse."""

import asyncio
import json
import random

import jax
import numpy as np
import pytest
import service_tools as tools
from prometheus_client.parser import text_string_to_metric_families
from service_tools import sentence

import cocoax as cx
from cocoax.errors import StorageError
from cocoax.service.batching import Batcher, Call
from cocoax.service.metrics import Metrics

JSON = {"content-type": "application/json"}
NAMES = [f"campaign {i}" for i in range(5)]


def state(it):
    return {name: it.summary(name) | {"decision": it.decide([name]).tobytes()} for name in it.names}


def test_answers_are_those_of_a_fleet_to_the_bit():
    async def play(client):
        for number in range(3):
            decided = (await client.post("/decide", names=NAMES)).json()
            assert np.array_equal(decided["decisions"], alone.decide(NAMES))
            rounds = tools.stacked(range(number, number + 5))
            answer = (await client.post("/observe", names=NAMES, rounds=rounds, at=decided["rounds"])).json()
            outcome = alone.observe(NAMES, jax.tree.map(np.asarray, rounds, is_leaf=lambda x: isinstance(x, list)))
            for field in ("loss", "constraint", "multiplier"):
                assert np.array_equal(answer[field], getattr(outcome, field))
            assert answer["rounds"] == [number + 1] * 5
        single = (await client.post("/observe", name=NAMES[0], rounds=tools.a_round(9), played=[0.25] * 4)).json()
        alone.observe(NAMES[:1], {k: np.array([v]) for k, v in tools.a_round(9).items()}, np.full((1, 4), 0.25))
        assert single["rounds"] == 4 and isinstance(single["loss"], float)
        assert (await client.get("/summary")).json() == it.summary() == alone.summary()
        assert (await client.get("/summary/campaign 0")).json() == alone.summary(NAMES[0])
        history = (await client.get("/history/campaign%200?last=3")).json()
        expected = alone.history(NAMES[0])[-3:]
        assert {name: expected[name].tolist() for name in expected.dtype.names or ()} == history
        found = (await client.get("/campaigns?search=N 3")).json()
        assert found == {"found": 1, "campaigns": [alone.summary(NAMES[3])]}
        assert (await client.post("/end", names=NAMES[1:])).status_code == 200 and it.names == ("campaign 0",)

    with tools.fleet() as it, tools.fleet() as alone:
        tools.asked(play, it)


def test_whole_numbers_are_numbers(free_promotion):
    """JavaScript writes 1.0 as 1; the first round must not make integers of all fields."""
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: r["a"] * x[0] + r["b"][0])

    async def play(client):
        for a in (1, 0.5, True):
            answer = await client.post("/observe", name="one", rounds={"a": a, "b": [2]})
            assert answer.status_code == (422 if a is True else 200)

    with cx.Fleet(problem, cx.learners.DPP(), key=jax.random.key(0), horizon=10) as it:
        tools.asked(play, it)
        assert it.rounds(["one"]) == 2


def counted(it, monkeypatch):
    """How many campaigns each call of `observe` has."""
    sizes, observe = [], it.observe

    def counting(names, *arguments, **options):
        sizes.append(len(names))
        return observe(names, *arguments, **options)

    monkeypatch.setattr(it, "observe", counting)
    return sizes


def test_requests_at_the_same_time_become_one_call(monkeypatch):
    async def play(client):
        posts = [client.post("/observe", name=f"c{i % 20}", rounds=tools.a_round(i)) for i in range(60)]
        answers = await tools.at_once(client, posts)
        assert all(answer.status_code == 200 for answer in answers)
        return [answer.json()["rounds"] for answer in answers]

    with tools.fleet() as it, tools.fleet() as alone:
        sizes = counted(it, monkeypatch)
        rounds = tools.asked(play, it)
        assert sizes == [20, 20, 20]
        assert rounds == [1 + i // 20 for i in range(60)]  # in the order in which they came
        for i in range(60):
            alone.observe([f"c{i % 20}"], {k: np.array([v]) for k, v in tools.a_round(i).items()})
        assert {name: state(it)[name] for name in alone.names} == state(alone)


def test_a_bad_round_refuses_its_own_request_alone():
    async def play(client):
        rounds = [tools.a_round(i) for i in range(10)]
        rounds[4]["value"][1] = None
        rounds[5]["value"][1] = float("inf")
        rounds[6]["more"] = 1.0
        bodies = [json.dumps({"name": f"c{i}", "rounds": each, "at": 0}) for i, each in enumerate(rounds)]
        posts = [client.http.post("/observe", content=body, headers=JSON) for body in bodies]
        return await tools.at_once(client, posts, count=9)

    with tools.fleet() as it:
        answers = tools.asked(play, it)
        assert [answer.status_code for answer in answers] == [200] * 4 + [422] * 3 + [200] * 3
        assert "must be numbers" in sentence(answers[4], 422) and "NaN or infinity" in sentence(answers[5], 422)
        assert "unknown field 'more'" in sentence(answers[6], 422)
        assert [int(it.rounds([name])[0]) if name in it else 0 for name in map("c{}".format, range(10))] == [
            int(i not in (4, 5, 6)) for i in range(10)
        ]


def test_one_bad_round_does_not_make_all_others_wait_for_the_disk(monkeypatch):
    async def play(client):
        rounds = [tools.a_round(i) for i in range(64)]
        rounds[17]["value"][1] = float("inf")
        bodies = [json.dumps({"name": f"c{i}", "rounds": each, "at": 0}) for i, each in enumerate(rounds)]
        return await tools.at_once(
            client, [client.http.post("/observe", content=body, headers=JSON) for body in bodies]
        )

    with tools.fleet() as it:
        sizes = counted(it, monkeypatch)
        answers = tools.asked(play, it)
        assert [answer.status_code for answer in answers] == [422 if i == 17 else 200 for i in range(64)]
        assert sizes == [64, 32, 16, 16, 8, 4, 2, 1, 1, 2, 4, 8, 32]  # halves; those without the bad one count


def test_a_round_counts_once_however_often_it_is_sent():
    async def play(client):
        rounds = tools.stacked(range(2))
        first = await client.post("/observe", names=NAMES[:2], rounds=rounds, at=[0, 0])
        again = await client.post("/observe", names=NAMES[:2], rounds=rounds, at=0)
        assert first.json() == again.json() and first.json()["rounds"] == [1, 1]
        many = await asyncio.gather(
            *(client.post("/observe", name=NAMES[0], rounds=tools.a_round(5), at=1) for _ in range(20))
        )
        assert {answer.json()["rounds"] for answer in many} == {2}
        assert "has 2 rounds" in sentence(await client.post("/observe", name=NAMES[0], rounds=rounds, at=0), 409)

    tools.asked(play)


def routing():
    def loss(x, r):
        return -r["value"] @ x

    return cx.Problem(cx.domains.ProbabilitySimplex(3), loss, lambda x, r: r["cost"] @ x - 0.3, request=("value",))


def test_requests_are_decided_observed_and_skipped():
    async def play(client):
        first = await client.post("/decide", name="one", requests={"value": [1, 2, 3]})
        assert first.status_code == 200 and np.isclose(sum(first.json()["decisions"]), 1)
        again = await client.post("/decide", name="one", requests={"value": [1, 2, 3]})
        assert again.json() == first.json()
        other = await client.post("/decide", name="one", requests={"value": [1, 2, 4]})
        assert "is not observed yet" in sentence(other, 409)
        assert (await client.post("/skip", names=["one"])).status_code == 200
        assert "open request" in sentence(await client.post("/skip", name="one"), 409)
        assert "no open request" in sentence(await client.post("/observe", name="one", rounds={"cost": [1, 1, 1]}), 409)
        assert (await client.post("/decide", name="one", requests={"value": [1, 2, 4]})).status_code == 200
        assert (await client.post("/observe", name="one", rounds={"cost": [0, 0, 1]})).json()["rounds"] == 1
        assert "requests=" in sentence(await client.post("/decide", name="two"), 422)
        assert "no campaign 'three'" in sentence(await client.post("/skip", name="three"), 404)

    predicted = cx.learners.AutoPrice(predict=lambda request: {**request, "cost": jax.numpy.full(3, 0.5)})
    with cx.Fleet(routing(), predicted, key=jax.random.key(3)) as it:
        tools.asked(play, it)


def test_tokens_open_what_their_role_may_do():
    everything = [("POST", "/decide", "play"), ("POST", "/end", "admin"), ("GET", "/summary", "read")]
    everything += [("GET", "/metrics", "read"), ("GET", "/openapi.json", "read"), ("GET", "/none", "read")]

    async def play(client):
        for method, path, needed in everything:
            for role, token in [
                *tools.TOKENS.items(),
                ("none", "x" * 20),
                ("none", ""),
                ("none", tools.TOKENS["read"][:-1]),
            ]:
                header = {"authorization": f"Bearer {token}", "content-type": "application/json"}
                answer = await client.http.request(method, path, headers=header, content=b'{"names": 3}')
                if role == "none":
                    assert "token is missing or unknown" in sentence(answer, 401)
                    assert answer.headers["www-authenticate"] == "Bearer"
                elif role in (needed, "admin"):
                    assert answer.status_code in (200, 404, 422)
                else:
                    assert f"{needed} is needed" in sentence(answer, 403)
            answer = await client.http.request(method, path, headers={"authorization": "Basic " + "a" * 20})
            sentence(answer, 401)
        for path in ("/", "/health", "/ready"):
            assert (await client.get(path)).status_code == 200

    with tools.fleet() as it:
        tools.asked(play, it, tokens=tools.TOKENS)
        assert len(it) == 0


def test_without_tokens_other_names_and_forms_of_web_pages_are_refused():
    async def play(client):
        for host in ("evil.example", "127.0.0.1.evil.example", "", "[::2]:8000"):
            sentence(await client.http.get("/summary", headers={"host": host}), 403)
        for host in ("localhost:80", "127.0.0.1:8000", "[::1]:8000"):
            assert (await client.http.get("/summary", headers={"host": host})).status_code == 200
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = await client.http.post("/end", content=b'{"name": "a"}', headers={"content-type": kind})
            assert "Content-Type: application/json" in sentence(answer, 415)

    tools.asked(play)


BAD = [
    ("POST", "/decide", b"{", 400, "not JSON"),
    ("POST", "/decide", b"", 400, "not JSON"),
    ("POST", "/decide", b"\xff\xfe", 400, "not JSON"),
    ("POST", "/decide", b"[" * 4000, 400, "not JSON"),
    ("POST", "/decide", b"[]", 422, "the body"),
    ("POST", "/decide", b"{}", 422, "names"),
    ("POST", "/decide", b'{"name": "a", "names": ["a"]}', 422, "names"),
    ("POST", "/decide", b'{"names": "a"}', 422, "names must be a list"),
    ("POST", "/decide", b'{"nmae": "a"}', 422, "there is no field 'nmae' here; there are names, name, ticket, tickets"),
    ("GET", "/history/a?last=x", b"", 422, "query.last must be a whole number"),
    ("POST", "/decide", b'{"names": []}', 422, "1 to"),
    ("POST", "/decide", b'{"names": ["a", "a"]}', 422, "comes twice"),
    ("POST", "/decide", b'{"names": [7]}', 422, "string"),
    ("POST", "/decide", b'{"name": ""}', 422, "printable"),
    ("POST", "/decide", b'{"name": "a\\u0000"}', 422, "printable"),
    ("POST", "/decide", b'{"name": "a", "more": 1}', 422, "more"),
    ("POST", "/decide", b'{"name": "a", "requests": {"value": 1}}', 422, "requests="),
    ("POST", "/observe", b'{"name": "a"}', 422, "rounds"),
    ("POST", "/observe", b'{"name": "a", "rounds": {}}', 422, ""),
    ("POST", "/observe", b'{"name": "a", "rounds": {"value": "x"}}', 422, "must be numbers"),
    ("POST", "/observe", b'{"name": "a", "rounds": {"value": [[1], [1, 2]]}}', 422, "same length"),
    ("POST", "/observe", b'{"names": ["a"], "rounds": {"value": [[1], [1]]}}', 422, "each of the 1 names"),
    ("POST", "/observe", b'{"name": "a", "rounds": {"value": 1}, "at": -1}', 422, "at must be a whole number >= 0"),
    ("POST", "/observe", b'{"name": "a", "rounds": {"value": 1}, "at": 1.5}', 422, "at must be a whole number"),
    ("POST", "/observe", b'{"name": "a", "rounds": {"value": 1}, "at": [0, 0]}', 422, "at"),
    ("POST", "/observe", b'{"name": "a", "rounds": {"value": 1}, "at": 99999999999999999999}', 422, "at"),
    ("POST", "/observe", b'{"name": "a", "rounds": {"value": 1}, "labels": 7}', 422, "labels must be a text"),
    ("POST", "/end", b'{"name": "nobody"}', 404, "no campaign 'nobody'"),
    ("POST", "/nothing", b"{}", 404, "openapi"),
    ("PUT", "/decide", b"{}", 405, "openapi"),
    ("GET", "/decide", b"", 405, "openapi"),
    ("GET", "/nothing", b"", 404, "openapi"),
    ("GET", "/summary/nobody", b"", 404, "no campaign 'nobody'"),
    ("GET", "/history/nobody", b"", 404, "no campaign 'nobody'"),
    ("GET", "/history/..%2f..%2fetc%2fpasswd", b"", 404, "no campaign"),
    ("GET", "/history/known?last=0", b"", 422, "last"),
    ("GET", "/campaigns?limit=many", b"", 422, "limit"),
    ("POST", "/decide", b'{"name": "' + b"a" * 5000 + b'"}', 413, "4096 bytes"),
]  # fmt: skip


@pytest.fixture
def known():
    """A fleet with one campaign that has played."""
    with tools.fleet() as it:
        it.observe(["known"], {name: np.array([value]) for name, value in tools.a_round(0).items()})
        yield it


def test_bad_requests_are_refused_in_a_sentence_and_touch_nobody(known):
    async def play(client):
        before = state(known)
        for method, path, body, status, part in BAD:
            answer = await client.http.request(method, path, content=body, headers=JSON)
            assert part in sentence(answer, status), (method, path, body)
        assert state(known)["known"] == before["known"]

        async def endless():
            while True:
                yield b" " * 1000

        answer = await client.http.post("/decide", content=endless(), headers=JSON)
        assert "4096 bytes" in sentence(answer, 413)

    tools.asked(play, known, largest_body=4096)


def test_made_up_names_do_not_fill_the_memory():
    async def play(client):
        assert (await client.post("/decide", names=["a", "b"])).status_code == 200
        for names in (["c", "d"], ["a", "c", "d"]):
            assert "may be 3 campaigns; end some" in sentence(await client.post("/decide", names=names), 409)
        answers = await tools.at_once(client, [client.post("/decide", name=name) for name in ("a", "c", "d", "b")])
        assert [answer.status_code for answer in answers] == [200, 409, 409, 200]  # the first one fills it
        assert (await client.post("/end", names=["blocks the worker"])).status_code == 200
        assert (await client.post("/observe", name="c", rounds=tools.a_round(0))).status_code == 200

    tools.asked(play, most_campaigns=3)


def test_campaigns_that_are_open_go_on_under_a_smaller_limit():
    async def play(client):
        assert (await client.post("/decide", names=["a", "b"])).status_code == 200
        assert "end some" in sentence(await client.post("/decide", name="c"), 409)

    with tools.fleet() as it:
        it.decide(["a", "b"])
        tools.asked(play, it, most_campaigns=1)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_fuzzed_requests_get_right_statuses_and_touch_nobody(known, count):
    draw = random.Random(0)
    good = [
        b'{"name": "fuzz", "rounds": {"value": [1, 2, 3, 4], "price": [1, 1, 1, 1], "budget": 0.5}, "at": 0}',
        b'{"names": ["fuzz", "other"], "at": [0, 0], "rounds": {"value": [[1, 2, 3, 4], [1, 2, 3, 4]]}}',
        b'{"names": ["fuzz"]}',
        b'{"name": "fuzz", "played": [0.1, 0.1, 0.1, 0.1], "rounds": {}}',
    ]

    def fuzzed():
        body = bytearray(draw.choice(good))
        for _ in range(draw.randrange(4)):
            place = draw.randrange(len(body))
            change = draw.choice([b"", b"\0", b"[", b"}", b'"', b"1e999", b"NaN", b"null", b"9" * 30, b"\xff", b"-"])
            body[place : place + draw.randrange(3)] = change
        return draw.choice(["/decide", "/observe", "/skip", "/observe"]), bytes(body)

    async def play(client):
        before = state(known)["known"]
        statuses = set()
        for _ in range(count // 50):
            posts = [client.http.post(path, content=body, headers=JSON) for path, body in (fuzzed() for _ in range(50))]
            for answer in await asyncio.gather(*posts):
                statuses.add(answer.status_code)
                if answer.status_code != 200:
                    sentence(answer, answer.status_code)
        assert {200, 400, 422} <= statuses <= {200, 400, 404, 409, 422}
        assert state(known)["known"] == before
        assert (await client.get("/ready")).status_code == 200

    tools.asked(play, known)


def test_a_full_queue_and_a_full_disk_are_said(known, monkeypatch):
    async def play(client):
        posts = [client.post("/decide", name=f"c{i}") for i in range(3)]
        *answers, late = await tools.at_once(client, posts, count=2)
        assert all(answer.status_code == 200 for answer in answers)
        assert "wait already" in sentence(late, 429) and late.headers["retry-after"] == "1"

        tries = []

        def full(*_):
            tries.append(1)
            raise StorageError("the round was not stored: disk full")

        with monkeypatch.context() as patched:
            patched.setattr(known._durable._journal, "append", full)
            assert "disk full" in sentence(await client.post("/observe", name="known", rounds=tools.a_round(1)), 503)
            assert (await client.post("/decide", name="known")).status_code == 200  # nothing of it is stored
            assert "disk full" in sentence(await client.get("/ready"), 503)
            asked = [client.post("/observe", name=name, rounds=tools.a_round(1)) for name in ("known", "other")]
            tries.clear()
            assert {answer.status_code for answer in await tools.at_once(client, asked)} == {503}
            assert len(tries) == 1  # for both of them
        assert (await client.post("/observe", name="known", rounds=tools.a_round(1))).json()["rounds"] == 2
        assert (await client.get("/ready")).status_code == 200

    tools.asked(play, known, longest_queue=2)


def test_what_goes_wrong_inside_is_not_shown(known, monkeypatch):
    async def play(client):
        def broken(*_):
            raise RuntimeError("secret")

        monkeypatch.setattr(known, "summary", broken)
        monkeypatch.setattr(known, "decide", broken)
        assert "secret" not in sentence(await client.get("/summary/known"), 500)
        assert "secret" not in sentence(await client.post("/decide", name="known"), 500)
        assert (await client.get("/health")).status_code == 200

    tools.asked(play, known)


def test_metrics_say_what_the_fleet_says(known):
    async def play(client):
        await client.post("/decide", names=["known", "new"])
        await client.post("/decide", names=[])
        return (await client.get("/metrics")).text

    figures = tools.figures(tools.asked(play, known))
    summary = known.summary()
    assert figures["cocoax_rounds",] == 1 and figures["cocoax_campaigns",] == 2 and figures["cocoax_queue_length",] == 0
    for name in ("violation", "hard_violation", "mean_multiplier", "largest_multiplier"):
        for constraint, value in summary[name].items():
            assert figures[f"cocoax_{name}", constraint] == value
    assert figures["cocoax_requests_total", "decide", "200"] == 1
    assert figures["cocoax_refused_total", "422"] == figures["cocoax_requests_total", "decide", "422"] == 1
    assert figures["cocoax_served_total", "decide"] == 2
    assert figures["cocoax_request_seconds_count", "decide"] == 2


class Many:
    """Looks like a fleet of 1,200 campaigns."""

    names = tuple(f"c{i}" for i in range(1200))

    def summary(self, name=None):
        whole = {"campaigns": len(self.names), "rounds": 0, "loss": 0.0, "alarms": 0}
        return whole if name is None else {"campaign": name, "violation": {"g": 1.0}}

    def regret_bounds(self, names):
        raise cx.SessionError("not certified")


def test_metrics_have_figures_of_a_thousand_campaigns_at_most():
    families = text_string_to_metric_families(Metrics(Many(), lambda: 0).text("C").decode())
    found = {family.name: family.samples for family in families}
    assert found["cocoax_campaigns"][0].value == 1200 and len(found["cocoax_campaign_violation"]) == 1000


def test_a_path_that_is_a_star_is_refused_as_others_are(known):
    """As OPTIONS * of a proxy, which httpx cannot send."""

    async def play(client):
        sent = []

        async def send(message):
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        for method in ("GET", "OPTIONS"):
            scope = {"type": "http", "method": method, "path": "*", "headers": headers, "query_string": b""}
            await client.app(scope, _nothing, send)
        return [message["status"] for message in sent if message["type"] == "http.response.start"]

    assert tools.asked(play, known) == [404, 404]


async def _nothing():
    return {"type": "http.request", "body": b"", "more_body": False}


def test_openapi_describes_every_call(known):
    async def play(client):
        return (await client.get("/openapi.json")).json()

    paths = tools.asked(play, known)["paths"]
    assert paths.keys() == {
        "/decide", "/observe", "/skip", "/begin", "/change", "/end", "/health", "/ready", "/metrics",
        "/summary", "/summary/{name}", "/campaigns", "/history/{name}", "/certificate/{name}",
    }  # fmt: skip
    assert "requestBody" in paths["/observe"]["post"]


def test_calls_that_share_a_campaign_keep_their_order():
    """Also those that come after one which waits for a campaign."""
    with tools.fleet() as it:
        batcher = Batcher(it, largest=4)
        calls = [Call("end", list(names)) for names in ("ab", "bc", "c", "d", "efgh", "e")]
        batcher._queue.extend(calls)
        batches = []
        while batcher.waiting:
            batches.append(["".join(call.names) for call in batcher._take()])
        assert batches == [["ab", "d"], ["bc"], ["c"], ["efgh"], ["e"]]
