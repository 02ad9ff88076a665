"""What the name of a column says of its values: that they identify something, or that they are days.

A name alone never decides: :mod:`cardboost.data.roles` asks it only where the values leave the question open.
"""

from __future__ import annotations

import re
from enum import Enum


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# What rows are about: a number of one of these identifies it. English first, then German, French, Spanish.
_ENTITIES = _listed(
    """account acct admission agent applicant application asset booking borrower branch card case client
    contract cust customer device document doc driver employee emp encounter equipment event invoice item loan
    machine member merchant object order parcel passport patient person personnel phone plot policy product
    record ref reference registration request row sample seller sensor serial session shipment staff student
    subject subscriber supplier ticket transaction trans txn unit user vehicle vendor visit
    antrag auftrag artikel bestell beleg fall kunde kunden konto kdn kd mitglied patienten personal police
    rechnung rechnungs vertrag vertrags
    commande compte contrat dossier facture
    cliente contrato cuenta factura pedido"""
)
# Those that nobody writes an amount or a count of: the bare name is enough.
_BARE = _listed("account client customer device member patient person subject user kunde cliente")
_KEYS = _listed(
    """id ids uid uuid guid oid pk rowid identifier key iban ssn isbn imei vin serial passport phone telephone
    telefon"""
)
_NUMBERS = _listed("no nr num nbr number nummer numero code")
_BARE_NUMBERS = _listed("no nr nbr nummer idx")  # a bare number may be a count
_COUNTS = _listed("n no nr num nbr number count anzahl")  # of what follows
_GLUED = re.compile(rf"({'|'.join(sorted(_ENTITIES))})_?(id|key|{'|'.join(sorted(_NUMBERS))})")

_DAYS = _listed("date dt datum dob fecha birthday geburtstag")
_DONE = _listed("born built left made paid sent sold")  # opened_at, sold_on
_NO_DAYS = _listed("update candidate mandate validate consolidate")


def words_of(name: str) -> list[str]:
    """The words of a name in small letters: of ``customerID`` and ``CUSTOMER_ID`` customer and id."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name.replace("#", " number "))
    return re.findall(r"[^\W\d_]+", apart.lower())


class KeyName(Enum):
    """What the name of a column has to do with identifiers."""

    NONE = 0
    ENTITY = 1  # a bare word for someone or something that has a number: customer, patient
    NUMBER = 2  # a number of something: custno, account number, Kunden-Nr
    ID = 3  # ID, customer_id, key, uuid


def key_name(name: str) -> KeyName:
    """Whether a name is that of an identifier.

    Numbers of something (``customer_no``) are meant, not how many there are (``no_of_visits``, ``num_doors``,
    ``education_num``) and not the codes of a list (``zip_code``).
    """
    words = words_of(name)
    if not words:
        return KeyName.NONE
    last, glued = words[-1], _GLUED.fullmatch(words[-1])
    if len(words) > 1 and words[0] in _COUNTS:
        return KeyName.NONE
    if last in _KEYS or words[0] == "id" or (glued and glued[2] in ("id", "key")):
        return KeyName.ID
    if glued or (len(words) > 1 and last in _NUMBERS and words[-2] in _ENTITIES):
        return KeyName.NUMBER
    if len(words) == 1 and last in _BARE_NUMBERS:
        return KeyName.NUMBER
    return KeyName.ENTITY if len(words) == 1 and last in _BARE else KeyName.NONE


def names_day(name: str) -> bool:
    """Whether a name is that of a day: date, order_date, opened_at, Datum; not sales_to_date."""
    words = words_of(name)
    if not words or (len(words) > 1 and words[-2] == "to"):
        return False
    last = words[-1]
    if last in _DAYS or (last.endswith(("date", "datum")) and last not in _NO_DAYS):
        return True
    done = len(words) > 1 and (words[-2].endswith("ed") or words[-2] in _DONE)
    return done and last in ("at", "on")
