// data extract on pages in the encodings of the world, that say so, say otherwise, say it late, or say nothing.
#include <gmock/gmock.h>
#include <iconv.h>

#include <algorithm>

#include "corpus/extract/charset.h"
#include "corpus/extract/find_encoding.h"
#include "corpus/pages.h"

namespace teratron::testing {
namespace {

using namespace std::string_literals;

struct Sample {
  std::string language;
  std::vector<std::string> encodings;  // labels of those that can write it
  std::string text;
};

// Written for this test.
const std::vector<Sample> kSamples = {
    {"de",
     {"windows-1252"},
     "Die Fähre lag den ganzen Vormittag am anderen Ufer, weil das Wasser höher stand, als sich "
     "irgendjemand im Dorf erinnern konnte. Über den Wiesen hing Nebel, und die Kühe drängten sich "
     "müde am Zaun. „Wir müssen warten“, sagte der Müller, „bis die Brücke geprüft ist.“ "
     "Später öffnete das Gasthaus, es gab heiße Suppe und süßes Brot für alle Gäste."},
    {"fr",
     {"windows-1252"},
     "Le bac est resté toute la matinée sur l'autre rive, car l'eau était plus haute que personne au "
     "village ne pouvait s'en souvenir. L'été dernier, à la même époque, on traversait à pied. « "
     "Il faudra attendre », répéta le meunier, déçu, « jusqu'à ce que le câble soit réparé. » "
     "Où étaient donc passés les élèves et leur maître d'école ?"},
    {"es",
     {"windows-1252"},
     "La barca pasó toda la mañana en la otra orilla, porque el agua estaba más alta de lo que nadie "
     "en el pueblo podía recordar. Los niños jugaban en el jardín de la señora Peña. ¿Cuándo "
     "volverá el capitán? Mañana, según dijo el alcalde, habrá más información sobre el camión y "
     "la estación."},
    {"pl",
     {"windows-1250", "iso-8859-2"},
     "Prom stał cały ranek po drugiej stronie, ponieważ woda była wyższa, niż ktokolwiek we wsi "
     "mógł sobie przypomnieć. Dzieci bawiły się na łące, a rybacy grali w karty. Wójt "
     "powiedział, że jutro będą wiadomości o nowym moście, ale nikt mu już nie wierzył. Późnym "
     "wieczorem przyszła łódź i zabrała wszystkich na drugi brzeg rzeki."},
    {"cs",
     {"windows-1250", "iso-8859-2"},
     "Přívoz stál celé dopoledne na druhém břehu, protože voda byla výš, než si kdokoli ve "
     "vesnici pamatoval. Děti si hrály na louce a rybáři hráli karty. Starosta řekl, že zítra "
     "přijdou zprávy o novém mostě, ale nikdo mu už nevěřil. Pozdě večer přijela loď a "
     "všechny převezla přes řeku domů."},
    {"hu",
     {"iso-8859-2"},
     "A komp egész délelőtt a túlsó parton állt, mert a víz magasabb volt, mint amire a faluban "
     "bárki emlékezhetett. A gyerekek a réten játszottak, a halászok kártyáztak. A polgármester "
     "azt mondta, hogy holnap hírek jönnek az új hídról, de már senki sem hitt neki. Késő este "
     "jött egy csónak, és mindenkit átvitt a folyón."},
    {"ru",
     {"windows-1251", "koi8-r", "iso-8859-5", "ibm866"},
     "Паром всё утро стоял у дальнего берега, потому что "
     "вода поднялась выше, чем кто-либо в деревне мог "
     "вспомнить. Дети играли на лугу, рыбаки играли в карты. "
     "Староста сказал, что завтра будут новости о новом "
     "мосте, но ему уже никто не верил. Поздно вечером пришла "
     "лодка и перевезла всех через реку."},
    {"uk",
     {"windows-1251", "koi8-u"},
     "Пором увесь ранок стояв біля дальнього берега, бо вода "
     "піднялася вище, ніж будь-хто в селі міг пригадати. Діти "
     "гралися на лузі, рибалки грали в карти. Староста "
     "сказав, що завтра будуть новини про новий міст, але "
     "йому вже ніхто не вірив. Пізно ввечері прийшов човен і "
     "перевіз усіх через річку."},
    {"bg",
     {"windows-1251"},
     "Фериботът стоя цяла сутрин на отсрещния бряг, защото "
     "водата беше по-висока, отколкото някой в селото можеше "
     "да си спомни. Децата играеха на поляната, а рибарите "
     "играеха карти. Кметът каза, че утре ще има новини за "
     "новия мост, но вече никой не му вярваше."},
    {"el",
     {"windows-1253", "iso-8859-7"},
     "Το πορθμείο έμεινε όλο το πρωί στην απέναντι όχθη, "
     "γιατί το νερό ήταν πιο ψηλά από όσο μπορούσε να "
     "θυμηθεί κανείς στο χωριό. Τα παιδιά έπαιζαν στο λιβάδι "
     "και οι ψαράδες έπαιζαν χαρτιά. Ο δήμαρχος είπε ότι "
     "αύριο θα υπάρχουν νέα για την καινούργια γέφυρα, αλλά "
     "κανείς δεν τον πίστευε πια."},
    {"tr",
     {"windows-1254"},
     "Feribot bütün sabah karşı kıyıda kaldı, çünkü su köyde kimsenin hatırlayamayacağı "
     "kadar yüksekti. Çocuklar çayırda oynuyor, balıkçılar kâğıt oynuyordu. Muhtar yarın yeni "
     "köprü hakkında haberler geleceğini söyledi ama artık kimse ona inanmıyordu. Akşam geç "
     "saatte bir kayık geldi ve herkesi nehrin karşısına geçirdi."},
    {"he",
     {"windows-1255"},
     "המעבורת עמדה כל הבוקר בגדה הרחוקה, כי המים היו גבוהים "
     "יותר ממה שמישהו בכפר יכול היה לזכור. הילדים שיחקו באחו "
     "והדייגים שיחקו קלפים. ראש הכפר אמר שמחר יהיו חדשות על "
     "הגשר החדש, אבל איש כבר לא האמין לו. בשעת ערב מאוחרת "
     "הגיעה סירה והעבירה את כולם."},
    {"ar",
     {"windows-1256"},
     "بقيت العبارة طوال الصباح عند الضفة البعيدة لأن الماء "
     "كان أعلى مما يستطيع أي شخص في القرية أن يتذكره. كان "
     "الأطفال يلعبون في المرج وكان الصيادون يلعبون الورق. "
     "قال العمدة إن أخبار الجسر الجديد ستصل غدا، لكن لم يعد "
     "أحد يصدقه. وفي المساء جاء قارب ونقل الجميع عبر النهر."},
    {"th",
     {"windows-874"},
     "เรือข้ามฟากจอดอยู่ที่ฝั่งไกลตลอดเช้า "
     "เพราะน้ำสูงกว่าที่ใครในหมู่บ้านจะจำได้ "
     "เด็กๆ เล่นกันในทุ่งหญ้า "
     "ส่วนชาวประมงเล่นไพ่ "
     "ผู้ใหญ่บ้านบอกว่าพรุ่งนี้จะมีข่าวเรื่องสะพานใหม่ "
     "แต่ไม่มีใครเชื่อเขาอีกแล้ว "
     "ตกดึกมีเรือลำหนึ่งมารับทุกคนข้ามแม่น้ำกลับบ้าน"},
    {"zh",
     {"gb2312"},
     "渡船整个上午都停在对岸，因为河水涨得比村里任何人记忆中的都要高。孩子们在草地上玩耍，渔夫们打着纸牌。村长说明天会"
     "有关于新桥的消息，可是已经没有人相信他了。深夜来了一条小船，把大家都送过了河。"},
    {"zt",
     {"big5"},
     "渡船整個上午都停在對岸，因為河水漲得比村裡任何人記憶中的都要高。孩子們在草地上玩耍，漁夫們打著紙牌。村長說明天會"
     "有關於新橋的消息，可是已經沒有人相信他了。深夜來了一條小船，把大家都送過了河。"},
    {"ja",
     {"shift_jis", "euc-jp", "iso-2022-jp"},
     "渡し船は午前中ずっと向こう岸に泊まっていた。村の誰も覚えていないほど水位が高かったからである。子供たちは草原で遊"
     "び、漁師たちはトランプをしていた。村長は、明日には新しい橋についての知らせがあると言ったが、もう誰も信じなかった"
     "。夜遅くに小舟が来て、みんなを川の向こうへ渡した。"},
    {"ko",
     {"euc-kr"},
     "나룻배는 오전 내내 건너편 강가에 머물러 있었다. 마을 사람 누구도 "
     "기억하지 못할 만큼 물이 높았기 때문이다. 아이들은 풀밭에서 놀고 "
     "어부들은 카드놀이를 했다. 촌장은 내일 새 다리에 대한 소식이 있을 "
     "것이라고 말했지만 이제 아무도 그를 믿지 않았다. 밤늦게 작은 배가 와서 "
     "모두를 강 건너로 데려다주었다."},
    {"lt",
     {"windows-1257"},
     "Keltas visą rytą stovėjo prie tolimojo kranto, nes vanduo buvo aukštesnis, nei kas nors kaime "
     "galėjo prisiminti. Vaikai žaidė pievoje, o žvejai lošė kortomis. Seniūnas sakė, kad rytoj "
     "bus žinių apie naują tiltą, bet niekas juo nebetikėjo. Vėlai vakare atplaukė valtis ir visus "
     "perkėlė per upę."},
};

// By glibc, whose names are the labels' but where browsers mean more than a label says.
std::string encoded(const std::string& text, const std::string& label) {
  const std::map<std::string, std::string> glibc = {
      {"gb2312", "GBK"}, {"shift_jis", "CP932"}, {"euc-kr", "UHC"}, {"windows-874", "CP874"}, {"ibm866", "CP866"}};
  const iconv_t converter = ::iconv_open(glibc.contains(label) ? glibc.at(label).c_str() : label.c_str(), "UTF-8");
  std::string out(text.size() * 4 + 16, '\0'), copy = text;
  char *from = copy.data(), *to = out.data();
  std::size_t left = copy.size(), room = out.size();
  EXPECT_NE(::iconv(converter, &from, &left, &to, &room), static_cast<std::size_t>(-1)) << label;
  ::iconv(converter, nullptr, nullptr, &to, &room);
  ::iconv_close(converter);
  out.resize(out.size() - room);
  return out;
}

std::string meta(const std::string& label) {
  return "<meta http-equiv='Content-Type' content='text/html; charset=" + label + "'>";
}
// Longer than browsers, and we before, looked for a declaration.
std::string late_meta(const std::string& label) {
  return "<style>" + std::string(5000, ' ') + "</style>" + meta(label);
}

std::string read(const std::string& bytes, const std::string& transport) {
  return to_utf8(bytes, find_encoding(bytes, transport));
}

const std::vector<std::string> kLabels = {
    "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256",
    "iso-8859-1",   "iso-8859-2",   "iso-8859-5",   "iso-8859-7",   "koi8-r",       "gbk",          "big5",
    "shift_jis",    "euc-jp",       "euc-kr",       "utf-8",        "utf-16",       "nonsense"};

TEST(ExtractCharset, ReadsPagesThatDeclareTheirEncodingEarlyLateAndNever) {
  for (const Sample& sample : kSamples) {
    for (const std::string& label : sample.encodings) {
      for (const std::string& head : {""s, meta(label), late_meta(label)}) {
        const std::string page = page_of({sample.text}, head);
        EXPECT_EQ(read(encoded(page, label), ""), page) << sample.language << " in " << label << "\n" << head;
      }
      const std::string page = page_of({sample.text});
      EXPECT_EQ(read(encoded(page, label), label), page) << sample.language << " in " << label;
    }
  }
}

TEST(ExtractCharset, Utf8IsReadWhateverIsDeclared) {
  for (const Sample& sample : kSamples) {
    for (const std::string& label : kLabels) {
      const std::string page = page_of({sample.text}, meta(label));
      EXPECT_EQ(read(page, ""), page) << label;
      EXPECT_EQ(read(page, label), page) << label;
      // A page whose last character is cut, or with a few bytes of something else.
      EXPECT_EQ(read(page + "\xC3", label), page + "\uFFFD") << label;
      EXPECT_EQ(read(page + "caf\xE9 ", label), page + "caf\uFFFD ") << label;
    }
  }
}

TEST(ExtractCharset, Utf16IsReadWithAndWithoutAMark) {
  for (const Sample& sample : kSamples) {
    for (const std::string encoding : {"UTF-16LE", "UTF-16BE"}) {
      const std::string page = page_of({sample.text}), bytes = encoded(page, encoding);
      for (const std::string& transport : {""s, "utf-16"s, "iso-8859-1"s, "utf-8"s}) {
        EXPECT_EQ(read(bytes, transport), page) << sample.language << encoding << transport;
        EXPECT_EQ(read(encoded("\uFEFF", encoding) + bytes, transport), page) << sample.language << encoding;
      }
    }
  }
}

// A declaration under which the bytes are errors, or a text in no language, does not count. Not all that is wrong can
// be seen: of a text in Latin letters a few characters differ.
TEST(ExtractCharset, WrongDeclarationsAreSeenThrough) {
  int pages = 0, wrong = 0;
  for (const Sample& sample : kSamples) {
    for (const std::string& label : sample.encodings) {
      for (const std::string& declared : kLabels) {
        const std::string page = page_of({sample.text}), saying = page_of({sample.text}, meta(declared));
        for (const auto& [text, transport] :
             {std::pair(page, declared), std::pair(saying, ""s), std::pair(saying, label)}) {
          ++pages;
          if (read(encoded(text, label), transport) == text) continue;
          ++wrong;
          const std::string& language = sample.language;
          EXPECT_TRUE(language == "de" || language == "fr" || language == "es")
              << language << " in " << label << ", declared " << transport << " and " << declared;
        }
      }
    }
  }
  EXPECT_LE(wrong * 200, pages) << pages;
}

TEST(ExtractCharset, FewBytesDoNotOverruleADeclaration) {
  const std::string page =
      page_of({"A page in English, with a caf\u00e9 in it, and hardly anything else to be told by."});
  for (const std::string& label : {"windows-1250"s, "windows-1252"s, "windows-1257"s}) {
    EXPECT_EQ(find_encoding(encoded(page, label), label), label);
  }
  EXPECT_EQ(find_encoding(encoded(page, "windows-1252"), ""), "windows-1252");
}

// The two encodings of Central Europe, named for each other, for a Western one, for UTF-8, or not at all.
TEST(ExtractCharset, ThoseOfCentralEuropeAreDistinguished) {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"pl",
       "Wczoraj wieczorem długo siedzieliśmy nad rzeką i patrzyliśmy, jak powoli ciemnieje woda. Nikt nie chciał "
       "wracać do domu, chociaż robiło się coraz zimniej."},
      {"cs",
       "Včera večer jsme dlouho seděli u řeky a dívali se, jak pomalu tmavne voda. Nikdo se nechtěl vracet domů, "
       "přestože se ochladilo."},
      {"hu",
       "Tegnap este sokáig ültünk a folyó partján, és néztük, ahogy lassan elsötétül a víz. Senki sem akart hazamenni, "
       "bár egyre hűvösebb lett, és később eső is jött."},
      {"sk",
       "Včera večer sme dlho sedeli pri rieke a pozerali sa, ako pomaly tmavne voda. Nikto sa nechcel vrátiť domov, "
       "hoci sa ochladilo a začínalo pršať."},
      {"hr",
       "Sinoć smo dugo sjedili uz rijeku i gledali kako voda polako tamni. Nitko se nije želio vratiti kući, iako je "
       "postajalo sve hladnije, a već je počela i kiša."}};
  for (const auto& [language, text] : texts) {
    for (const char* label : {"windows-1250", "iso-8859-2"}) {
      for (const char* declared : {"", "windows-1250", "iso-8859-2", "iso-8859-1", "windows-1252", "utf-8"}) {
        const std::string page = page_of({text, text}, *declared == '\0' ? "" : meta(declared));
        EXPECT_EQ(read(encoded(page, label), ""), page) << language << " in " << label << ", declared " << declared;
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing
